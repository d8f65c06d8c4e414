import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The records that the Java clients send: corner cases of keys, values and headers first, then some that compress. */
final class Samples {
    private Samples() {}

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static List<ProducerRecord<byte[], byte[]>> of(String topic, int count, boolean headers) {
        byte[] binary = new byte[52];
        for (int i = 0; i < binary.length; i++) {
            binary[i] = (byte) (i * 5);
        }
        byte[][][] corners = {{utf8("key"), utf8("value")}, {null, utf8("no key")}, {new byte[0], utf8("empty key")},
            {utf8("no value"), null}, {utf8("empty value"), new byte[0]}, {null, null},
            {utf8("schl\u00fcssel"), utf8("wert \u2603")}, {utf8("binary"), binary}};
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            byte[] key;
            byte[] value;
            Long timestamp = null;
            if (i < corners.length) {
                key = corners[i][0];
                value = corners[i][1];
            } else {
                key = utf8("device-" + i % 5);
                value = utf8("{\"device\":" + i % 5 + ",\"state\":\"running\",\"reading\":" + i * 7 + "}");
                timestamp = 1_700_000_000_000L + i;
            }
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, i % 2, timestamp, key, value);
            if (headers && i % 4 == 0) {
                record.headers().add("trace", utf8("abc"));
            } else if (headers && i % 4 == 1) {
                record.headers().add("empty", new byte[0]).add("null", null);
            } else if (headers && i % 4 == 2) {
                record.headers().add("twice", utf8("1")).add("twice", utf8("2")).add("\u00fcn\u00ef", new byte[] {0, -1});
            }
            records.add(record);
        }
        return records;
    }
}
