import java.util.Collections;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** Sends three records and reads them back, with what clients had from 0.9 to 3.9: Talk TOPIC NAME=VALUE... */
public class Talk {
    public static void main(String[] arguments) throws Exception {
        String topic = arguments[0];
        Properties settings = new Properties();
        for (int n = 1; n < arguments.length; n++) {
            String[] pair = arguments[n].split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        String bytes = "org.apache.kafka.common.serialization.ByteArray";
        settings.put("key.serializer", bytes + "Serializer");
        settings.put("value.serializer", bytes + "Serializer");
        settings.put("key.deserializer", bytes + "Deserializer");
        settings.put("value.deserializer", bytes + "Deserializer");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("group.id", "talk");
        long first = -1;
        KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        for (int n = 0; n < 3; n++) {
            byte[] key = ("key-" + n).getBytes("UTF-8");
            byte[] value = ("value-" + n + "-of-" + topic).getBytes("UTF-8");
            RecordMetadata sent = producer.send(new ProducerRecord<byte[], byte[]>(topic, 0, key, value)).get();
            if (first < 0) first = sent.offset();
            say("produce", topic, sent.offset(), time(sent), key, value);
        }
        producer.close();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings);
        TopicPartition partition = new TopicPartition(topic, 0);
        consumer.assign(Collections.singletonList(partition));
        consumer.seek(partition, first);
        int left = 3;
        while (left > 0) {
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(500)) {
                say("fetch", topic, record.offset(), time(record), record.key(), record.value());
                left--;
            }
        }
        consumer.close();
        System.exit(0);
    }

    /** The timestamp of a record, which 0.9 does not have. */
    private static Object time(Object record) {
        try {
            return record.getClass().getMethod("timestamp").invoke(record);
        } catch (ReflectiveOperationException missing) {
            return null;
        }
    }

    private static void say(String direction, String topic, long offset, Object time, byte[] key, byte[] value) {
        java.util.Base64.Encoder text = java.util.Base64.getEncoder();
        System.out.println("{\"direction\":\"" + direction + "\",\"topic\":\"" + topic + "\",\"partition\":0,\"offset\":"
            + offset + ",\"timestamp\":" + time + ",\"timestamp_type\":null,\"key\":\"" + text.encodeToString(key)
            + "\",\"value\":\"" + text.encodeToString(value) + "\",\"headers\":[]}");
    }
}
