// The Java client with default settings: java -cp JARS Client.java BOOTSTRAP TOPIC
//
// Writes 20 values, reads 20 as a member of a group, commits, and prints what it has read.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Client {
    public static void main(String[] words) throws Exception {
        Map<String, Object> writing = Map.of("bootstrap.servers", words[0]);
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 20; number++) {
                producer.send(new ProducerRecord<>(words[1], "value " + number)).get();
            }
        }
        Map<String, Object> reading =
                Map.of("bootstrap.servers", words[0], "group.id", "g", "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(words[1]));
            long until = System.currentTimeMillis() + 15_000;
            for (int count = 0; count < 20 && System.currentTimeMillis() < until; ) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    System.out.println(one.value());
                    count++;
                }
            }
            consumer.commitSync();
        }
    }
}
