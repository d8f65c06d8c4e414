import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;

/**
 * Members of groups that come and go as the lines of standard input say, several in one process.
 *
 * <pre>
 * GroupTour BOOTSTRAP
 *     consumer NAME GROUP TOPIC [slow=MS] [key=value ...]     a member; slow: so long it gives partitions up
 *     share NAME GROUP TOPIC HOW [key=value ...]              HOW: accept, release, reject, or hold=MS
 *     streams NAME GROUP TOPIC FOLDER [key=value ...]         an application that counts, with a state store
 *     transactions ID TOPIC [commit|abort ...]                one transaction of three records each
 *     group GROUP key=value ...                               configuration of a group
 *     leave NAME
 * </pre>
 */
public final class GroupTour {
    private interface Member {
        void leave() throws Exception;
    }

    private static String bootstrap;

    private static Properties properties(String client, String[] words, int from) {
        Properties made = new Properties();
        made.put("bootstrap.servers", bootstrap);
        made.put("client.id", client);
        made.put("enable.metrics.push", "false");
        for (int i = from; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            made.put(pair[0], pair[1]);
        }
        return made;
    }

    private static List<String> named(Collection<TopicPartition> partitions) {
        return partitions.stream().map(String::valueOf).sorted().collect(Collectors.toList());
    }

    /** A consumer in a thread of its own. */
    private static final class Consuming extends Thread implements Member, ConsumerRebalanceListener {
        private final String name;
        private final String topic;
        private final long slow;
        private final KafkaConsumer<byte[], byte[]> consumer;
        private volatile boolean ends;

        Consuming(String[] words) {
            name = words[1];
            topic = words[3];
            boolean has = words.length > 4 && words[4].startsWith("slow=");
            slow = has ? Long.parseLong(words[4].substring(5)) : 0;
            Properties made = properties(name, words, has ? 5 : 4);
            made.put("group.id", words[2]);
            made.putIfAbsent("auto.offset.reset", "earliest");
            consumer = new KafkaConsumer<>(made, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic), this);
                while (!ends) {
                    boolean some = !consumer.poll(Duration.ofMillis(100)).isEmpty();
                    if (some && !ends) {
                        try {
                            consumer.commitSync();
                        } catch (KafkaException error) {
                            Report.line("member", name, "commit", error.getClass().getSimpleName());
                        }
                    }
                }
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
            Report.line("member", name, "assigned", named(partitions));
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            Report.line("member", name, "revoked", named(partitions));
            if (slow > 0 && !ends) {
                try {
                    Thread.sleep(slow);
                } catch (InterruptedException error) {
                    interrupt();
                }
            }
        }

        @Override
        public void leave() throws Exception {
            ends = true;
            join();
        }
    }

    /** A share consumer in a thread of its own. */
    private static final class Sharing extends Thread implements Member {
        private final String name;
        private final String topic;
        private final String how;
        private final KafkaShareConsumer<byte[], byte[]> consumer;
        private volatile boolean ends;

        Sharing(String[] words) {
            name = words[1];
            topic = words[3];
            how = words[4];
            Properties made = properties(name, words, 5);
            made.put("group.id", words[2]);
            made.put("share.acknowledgement.mode", "explicit");
            consumer = new KafkaShareConsumer<>(made, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        }

        @Override
        public void run() {
            try (consumer) {
                consumer.subscribe(List.of(topic));
                while (!ends) {
                    for (ConsumerRecord<byte[], byte[]> one : consumer.poll(Duration.ofMillis(200))) {
                        short count = one.deliveryCount().orElse((short) 0);
                        String value = new String(one.value(), StandardCharsets.UTF_8);
                        AcknowledgeType type = AcknowledgeType.ACCEPT;
                        if (how.startsWith("hold=")) {
                            Thread.sleep(Long.parseLong(how.substring(5)));
                        } else if (value.startsWith("release-")) {
                            // So many times, and then no more.
                            int times = Integer.parseInt(value.split("-")[1]);
                            type = count <= times ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
                        } else if (value.startsWith("reject")) {
                            type = AcknowledgeType.REJECT;
                        }
                        consumer.acknowledge(one, type);
                        Report.line("member", name, "topic", one.topic(), "partition", one.partition(), "offset",
                            one.offset(), "count", count, "acknowledged", type.toString());
                    }
                    consumer.commitSync(Duration.ofSeconds(5));
                }
            } catch (InterruptedException error) {
                interrupt();
            }
        }

        @Override
        public void leave() throws Exception {
            ends = true;
            join();
        }
    }

    private static Member streams(String[] words) {
        Properties made = properties(words[1], words, 5);
        made.put("application.id", words[2]);
        made.put("state.dir", words[4]);
        made.put("auto.offset.reset", "earliest");
        made.put("commit.interval.ms", "1000");
        made.putIfAbsent("group.protocol", "streams");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(List.of(words[3]), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .filter((key, value) -> key != null)
            .groupByKey()
            .count();
        KafkaStreams streams = new KafkaStreams(builder.build(), made);
        streams.start();
        return () -> streams.close(
            new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(20)));
    }

    private static void transactions(String[] words) throws Exception {
        Properties made = properties(words[1], new String[0], 0);
        made.put("transactional.id", words[1]);
        try (var producer = new KafkaProducer<>(made, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (String end : Arrays.copyOfRange(words, 3, words.length)) {
                producer.beginTransaction();
                for (int i = 0; i < 3; i++) {
                    byte[] value = ("value " + i).getBytes(StandardCharsets.UTF_8);
                    producer.send(new ProducerRecord<>(words[2], i % 2, new byte[] {(byte) i}, value)).get();
                }
                Thread.sleep(200);
                if (end.equals("commit")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                Report.line("transaction", words[1], "end", end);
            }
        }
    }

    private static void configure(String[] words) throws Exception {
        try (Admin admin = Admin.create(properties("admin", new String[0], 0))) {
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, words[1]);
            List<AlterConfigOp> made = Arrays.stream(words).skip(2).map(one -> one.split("=", 2))
                .map(pair -> new AlterConfigOp(new ConfigEntry(pair[0], pair[1]), AlterConfigOp.OpType.SET))
                .collect(Collectors.toList());
            admin.incrementalAlterConfigs(Map.of(group, made)).all().get();
        }
    }

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        Map<String, Member> members = new HashMap<>();
        Report.line("note", "version", "version", "kafka-clients " + AppInfoParser.getVersion());
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.trim().split(" ");
            switch (words[0]) {
                case "consumer" -> members.put(words[1], started(new Consuming(words)));
                case "share" -> members.put(words[1], started(new Sharing(words)));
                case "streams" -> members.put(words[1], streams(words));
                case "transactions" -> transactions(words);
                case "group" -> configure(words);
                case "leave" -> members.remove(words[1]).leave();
                default -> throw new IllegalArgumentException(line);
            }
            Report.line("done", line);
        }
        for (Member one : members.values()) {
            one.leave();
        }
    }

    private static <T extends Thread> T started(T thread) {
        thread.start();
        return thread;
    }
}
