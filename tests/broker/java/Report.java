import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.record.TimestampType;

/** Prints what a client sent, read and was told: one JSON object per line, in the form of the golden expectations. */
final class Report {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Report() {}

    static synchronized void line(Object... pairs) {
        StringBuilder text = new StringBuilder("{");
        for (int i = 0; i < pairs.length; i += 2) {
            text.append(i == 0 ? "" : ",").append(json(pairs[i])).append(':').append(json(pairs[i + 1]));
        }
        OUT.println(text.append('}'));
    }

    static void fetched(ConsumerRecord<byte[], byte[]> record, Object... more) {
        Object[] line = {"direction", "fetch", "topic", record.topic(), "partition", record.partition(), "offset",
            record.offset(), "timestamp", record.timestamp() < 0 ? null : record.timestamp(), "timestamp_type",
            record.timestampType() == TimestampType.NO_TIMESTAMP_TYPE ? null : record.timestampType().id, "key",
            record.key(), "value", record.value(), "headers", record.headers()};
        line(join(line, more));
    }

    static void produced(ProducerRecord<byte[], byte[]> record, RecordMetadata got, Exception error, Object... more) {
        boolean told = error == null && got != null && got.hasOffset();
        Object partition = got != null && got.partition() >= 0 ? (Object) got.partition() : record.partition();
        Object stamp = got != null && got.hasTimestamp() ? (Object) got.timestamp() : record.timestamp();
        Object[] line = {"direction", "produce", "topic", record.topic(), "partition", partition, "offset",
            told ? got.offset() : null, "timestamp", stamp, "timestamp_type", null, "key", record.key(), "value",
            record.value(), "headers", record.headers()};
        Object[] all = join(line, more);
        line(error == null ? all : join(all, new Object[] {"error", error.getClass().getSimpleName()}));
    }

    private static Object[] join(Object[] first, Object[] second) {
        Object[] all = Arrays.copyOf(first, first.length + second.length);
        System.arraycopy(second, 0, all, first.length, second.length);
        return all;
    }

    private static String json(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        if (value instanceof byte[]) {
            return '"' + Base64.getEncoder().encodeToString((byte[]) value) + '"';
        }
        StringBuilder text = new StringBuilder();
        if (value instanceof Headers) {
            for (Header each : (Headers) value) {
                text.append(text.length() == 0 ? "[" : ",[").append(json(each.key())).append(',');
                text.append(json(each.value())).append(']');
            }
            return "[" + text + "]";
        }
        if (value instanceof Map) {
            for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
                text.append(text.length() == 0 ? "" : ",").append(json(String.valueOf(each.getKey()))).append(':');
                text.append(json(each.getValue()));
            }
            return "{" + text + "}";
        }
        if (value instanceof Collection) {
            for (Object each : (Collection<?>) value) {
                text.append(text.length() == 0 ? "" : ",").append(json(each));
            }
            return "[" + text + "]";
        }
        for (char c : String.valueOf(value).toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < 0x20) {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return '"' + text.toString() + '"';
    }
}
