import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Share groups (KIP-932): two members that accept, release and reject records, and the administration of the group.
 *
 * <pre>ShareTour BOOTSTRAP PREFIX [key=value ...]</pre>
 */
public final class ShareTour {
    private interface Call {
        KafkaFuture<?> run();
    }

    private static void attempt(String name, Call call) {
        try {
            call.run().get(15, TimeUnit.SECONDS);
            Report.line("note", "admin", "call", name, "error", null);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            Report.line("note", "admin", "call", name, "error", cause.getClass().getSimpleName());
        }
    }

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("enable.metrics.push", "false");
        for (int i = 2; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        String group = args[1] + "-share";
        List<String> topics = Arrays.asList(args[1] + "-none", args[1] + "-lz4");
        Report.line("note", "version", "version", "kafka-clients " + AppInfoParser.getVersion());
        try (Admin admin = Admin.create(properties)) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            attempt("incrementalAlterConfigs (group)", () -> admin.incrementalAlterConfigs(
                Map.of(resource, List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET)))).all());
            Thread first = new Thread(() -> member(properties, group, topics, "implicit", 5_000));
            Thread second = new Thread(() -> member(properties, group, topics, "explicit", 3_000));
            first.start();
            Thread.sleep(1_000);
            second.start();
            Thread.sleep(1_000);
            attempt("describeShareGroups", () -> admin.describeShareGroups(List.of(group)).all());
            second.join();
            first.join();
            TopicPartition partition = new TopicPartition(topics.get(0), 0);
            attempt("listShareGroupOffsets", () ->
                admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).all());
            attempt("alterShareGroupOffsets", () -> admin.alterShareGroupOffsets(group, Map.of(partition, 2L)).all());
            attempt("deleteShareGroupOffsets", () ->
                admin.deleteShareGroupOffsets(group, java.util.Set.of(topics.get(1))).all());
            attempt("listGroups", () -> admin.listGroups().all());
            attempt("listConfigResources", () -> admin.listConfigResources().all());
            attempt("deleteShareGroups", () -> admin.deleteShareGroups(List.of(group)).all());
        }
    }

    private static void member(Properties common, String group, List<String> topics, String mode, long life) {
        Properties properties = new Properties();
        properties.putAll(common);
        properties.put("group.id", group);
        properties.put("client.id", group + "-" + mode);
        properties.put("share.acknowledgement.mode", mode);
        properties.put("fetch.max.wait.ms", "100");
        AcknowledgeType[] types = {AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT};
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(topics);
            long end = System.currentTimeMillis() + life;
            while (System.currentTimeMillis() < end) {
                int n = 0;
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) {
                    AcknowledgeType type = types[n++ % types.length];
                    if (mode.equals("explicit")) {
                        consumer.acknowledge(each, type);
                        Report.fetched(each, "group", group, "acknowledged", type.toString());
                    } else {
                        Report.fetched(each, "group", group);
                    }
                }
                consumer.commitSync(Duration.ofSeconds(5));
            }
        }
    }
}
