// Transactions and a share consumer of the Java client: java -cp JARS Share.java BOOTSTRAP TOPIC
//
// Commits two transactions with one between that it aborts before anything was sent. Reads as a member of a share group,
// releases each second record once, and prints value and delivery count of what it has read.

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Share {
    public static void main(String[] words) throws Exception {
        Map<String, Object> common = Map.of("bootstrap.servers", words[0]);
        try (Admin admin = Admin.create(common)) {
            var group = new ConfigResource(ConfigResource.Type.GROUP, "g");
            var entry = new ConfigEntry("share.auto.offset.reset", "earliest");
            admin.incrementalAlterConfigs(Map.of(group, List.of(new AlterConfigOp(entry, AlterConfigOp.OpType.SET))))
                .all()
                .get();
        }
        Map<String, Object> writing = Map.of("bootstrap.servers", words[0], "transactional.id", "t");
        try (var producer = new KafkaProducer<>(writing, new StringSerializer(), new StringSerializer())) {
            producer.initTransactions();
            for (int round = 0; round < 3; round++) {
                producer.beginTransaction();
                if (round == 1) {
                    producer.abortTransaction();
                    continue;
                }
                for (int number = 0; number < 4; number++) {
                    producer.send(new ProducerRecord<>(words[1], "value " + round + number)).get();
                }
                producer.commitTransaction();
            }
        }
        Map<String, Object> reading =
            Map.of("bootstrap.servers", words[0], "group.id", "g", "share.acknowledgement.mode", "explicit");
        try (var consumer = new KafkaShareConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(words[1]));
            long until = System.currentTimeMillis() + 15_000;
            for (int left = 12; left > 0 && System.currentTimeMillis() < until; ) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    short count = one.deliveryCount().orElse((short) 0);
                    boolean again = count == 1 && one.value().matches(".*[02]");
                    consumer.acknowledge(one, again ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    System.out.println(one.value() + " " + count);
                    left--;
                }
                consumer.commitSync(Duration.ofSeconds(5));
            }
        }
    }
}
