import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A producer and a consumer of Kafka's own client that push their metrics for a while, and once more when they end.
 *
 *   java TelemetryClients BOOTSTRAP TOPIC MILLISECONDS
 *
 * Prints the instance id of each client as JSON.
 */
public final class TelemetryClients {
    private TelemetryClients() {}

    public static void main(String[] arguments) throws InterruptedException {
        String topic = arguments[1];
        Map<String, Object> shared = Map.of("bootstrap.servers", arguments[0], "enable.metrics.push", true);
        Map<String, Object> writes = Map.of("client.id", "java-producer", "linger.ms", 20);
        Map<String, Object> reads = Map.of("client.id", "java-consumer", "group.id", "java-" + topic,
            "auto.offset.reset", "earliest", "group.protocol", "classic", "fetch.max.wait.ms", 1000);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(joined(shared, writes),
                new ByteArraySerializer(), new ByteArraySerializer());
            KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(joined(shared, reads),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(topic));
            long end = System.currentTimeMillis() + Long.parseLong(arguments[2]);
            for (int i = 0; System.currentTimeMillis() < end; i++) {
                producer.send(new ProducerRecord<>(topic, ("record " + i).getBytes(StandardCharsets.UTF_8)));
                consumer.poll(Duration.ofMillis(100));
                Thread.sleep(200);
            }
            System.out.printf("{\"producer\":\"%s\",\"consumer\":\"%s\"}%n",
                producer.clientInstanceId(Duration.ofSeconds(5)), consumer.clientInstanceId(Duration.ofSeconds(5)));
        }
    }

    private static Map<String, Object> joined(Map<String, Object> one, Map<String, Object> other) {
        Map<String, Object> all = new java.util.HashMap<>(one);
        all.putAll(other);
        return all;
    }
}
