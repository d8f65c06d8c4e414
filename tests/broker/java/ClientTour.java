import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Kafka's own producer and consumer as recorded clients.
 *
 * <pre>ClientTour BOOTSTRAP PREFIX STEPS [key=value ...]</pre>
 *
 * STEPS is a comma-separated list of produce, transactions, read, classic, consumer (a group of two members with that
 * protocol, where the second joins late and leaves early), telemetry; the pairs are further settings of every client.
 * The topics PREFIX-CODEC and PREFIX-tx exist beforehand, with two partitions.
 */
public final class ClientTour {
    private static final List<String> CODECS = Arrays.asList("none", "gzip", "snappy", "lz4", "zstd");
    private static String prefix;
    private static final Properties COMMON = new Properties();

    public static void main(String[] args) throws Exception {
        COMMON.put("bootstrap.servers", args[0]);
        prefix = args[1];
        COMMON.put("client.id", "java-" + prefix);
        COMMON.put("enable.metrics.push", "false");
        for (int i = 3; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            COMMON.put(pair[0], pair[1]);
        }
        Report.line("note", "version", "version", "kafka-clients " + AppInfoParser.getVersion());
        for (String step : args[2].split(",")) {
            switch (step) {
                case "produce":
                    produceAll();
                    break;
                case "transactions":
                    transactions();
                    break;
                case "read":
                    read(CODECS, "read_uncommitted");
                    break;
                case "telemetry":
                    telemetry();
                    break;
                default:
                    group(step);
            }
        }
    }

    private static KafkaProducer<byte[], byte[]> producer(String... settings) {
        Properties properties = new Properties();
        properties.putAll(COMMON);
        properties.put("linger.ms", "50");
        for (int i = 0; i < settings.length; i += 2) {
            properties.put(settings[i], settings[i + 1]);
        }
        return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String... settings) {
        Properties properties = new Properties();
        properties.putAll(COMMON);
        properties.put("enable.auto.commit", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("fetch.max.wait.ms", "500");
        for (int i = 0; i < settings.length; i += 2) {
            properties.put(settings[i], settings[i + 1]);
        }
        return new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void produceAll() throws Exception {
        for (String codec : CODECS) {
            String topic = prefix + "-" + codec;
            // acks=all: idempotent, as is the default since Kafka 3.
            for (int[] run : new int[][] {{14, -1}, {4, 1}, {4, 0}}) {
                String idempotent = run[1] == -1 ? "true" : "false";
                try (KafkaProducer<byte[], byte[]> producer = producer("compression.type", codec, "acks",
                        String.valueOf(run[1]), "enable.idempotence", idempotent)) {
                    for (ProducerRecord<byte[], byte[]> record : Samples.of(topic, run[0], true)) {
                        producer.send(record, (got, error) ->
                            Report.produced(record, got, error, "codec", codec, "acks", run[1]));
                    }
                    producer.flush();
                }
            }
        }
    }

    /** Three transactions, the middle one aborted, and one that consumes, produces and commits its offsets. */
    private static void transactions() throws Exception {
        String topic = prefix + "-tx";
        try (KafkaProducer<byte[], byte[]> producer = producer("transactional.id", prefix + "-id",
                "compression.type", "lz4")) {
            producer.initTransactions();
            for (String ending : new String[] {"committed", "aborted", "committed"}) {
                producer.beginTransaction();
                for (ProducerRecord<byte[], byte[]> record : Samples.of(topic, 6, true)) {
                    producer.send(record, (got, error) -> Report.produced(record, got, error, "codec", "lz4", "acks",
                        -1, "transaction", ending));
                }
                producer.flush();
                if (ending.equals("aborted")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            try (KafkaConsumer<byte[], byte[]> consumer = consumer("group.id", prefix + "-copy", "isolation.level",
                    "read_committed")) {
                consumer.subscribe(Arrays.asList(prefix + "-none"));
                ConsumerRecords<byte[], byte[]> records = ConsumerRecords.empty();
                for (int i = 0; i < 100 && records.isEmpty(); i++) {
                    records = consumer.poll(Duration.ofMillis(100));
                }
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    Report.fetched(each);
                    ProducerRecord<byte[], byte[]> copy =
                        new ProducerRecord<>(topic, 0, each.timestamp(), each.key(), each.value(), each.headers());
                    producer.send(copy, (got, error) -> Report.produced(copy, got, error, "codec", "lz4", "acks", -1,
                        "transaction", "committed"));
                    offsets.put(new TopicPartition(each.topic(), each.partition()),
                        new OffsetAndMetadata(each.offset() + 1, "copied"));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
                Report.line("note", "committed", "group", prefix + "-copy", "offsets", plain(offsets));
            }
        }
        read(Arrays.asList("tx"), "read_committed");
        read(Arrays.asList("tx"), "read_uncommitted");
    }

    private static Map<String, Object> plain(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Object> out = new HashMap<>();
        offsets.forEach((partition, offset) -> out.put(partition.toString(), offset == null ? null : offset.offset()));
        return out;
    }

    private static void read(List<String> names, String isolation) {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("isolation.level", isolation)) {
            List<TopicPartition> partitions = new ArrayList<>();
            for (String name : names) {
                partitions.add(new TopicPartition(prefix + "-" + name, 0));
                partitions.add(new TopicPartition(prefix + "-" + name, 1));
            }
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            Map<TopicPartition, Long> times = new HashMap<>();
            partitions.forEach(each -> times.put(each, 1_700_000_000_005L));
            consumer.offsetsForTimes(times);
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long end = System.currentTimeMillis() + 15_000;
            while (System.currentTimeMillis() < end
                && partitions.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(100))) {
                    Report.fetched(each, "isolation", isolation);
                }
            }
        }
    }

    private static void group(String protocol) throws Exception {
        String name = prefix + "-" + protocol;
        Thread first = new Thread(() -> member(name, protocol, "first", 6_000));
        Thread second = new Thread(() -> member(name, protocol, "second", 2_000));
        first.start();
        Thread.sleep(1_500);
        second.start();
        first.join();
        second.join();
    }

    private static void member(String name, String protocol, String instance, long life) {
        List<String> settings = new ArrayList<>(Arrays.asList("group.id", name, "client.id", name + "-" + instance));
        if (!protocol.equals("classic")) {
            settings.addAll(Arrays.asList("group.protocol", protocol));
        } else {
            settings.addAll(Arrays.asList("session.timeout.ms", "6000", "heartbeat.interval.ms", "500"));
            if (instance.equals("second")) {
                settings.addAll(Arrays.asList("group.instance.id", instance));
            }
        }
        List<String> topics = new ArrayList<>();
        CODECS.forEach(codec -> topics.add(prefix + "-" + codec));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(settings.toArray(new String[0]))) {
            consumer.subscribe(topics, new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                    Report.line("note", "revoked", "group", name, "member", instance, "partitions", sorted(partitions));
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                    Report.line("note", "assigned", "group", name, "member", instance, "partitions", sorted(partitions));
                }
            });
            long end = System.currentTimeMillis() + life;
            while (System.currentTimeMillis() < end) {
                ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
                for (ConsumerRecord<byte[], byte[]> each : records) {
                    Report.fetched(each, "group", name);
                }
                try {
                    if (!records.isEmpty()) {
                        consumer.commitSync();
                    }
                } catch (KafkaException error) {
                    Report.line("note", "commit failed", "group", name, "error", error.getClass().getSimpleName());
                }
            }
            Report.line("note", "committed", "group", name, "offsets", plain(consumer.committed(consumer.assignment())));
        }
    }

    private static Collection<String> sorted(Collection<TopicPartition> partitions) {
        TreeSet<String> names = new TreeSet<>();
        partitions.forEach(each -> names.add(each.toString()));
        return names;
    }

    /** Live long enough to be asked for metrics and to push them several times, the last time on closing. */
    private static void telemetry() throws Exception {
        try (KafkaProducer<byte[], byte[]> producer =
                producer("enable.metrics.push", "true", "client.id", "telemetry-producer");
            KafkaConsumer<byte[], byte[]> consumer = consumer("enable.metrics.push", "true", "client.id",
                "telemetry-consumer", "group.id", prefix + "-telemetry")) {
            consumer.subscribe(Arrays.asList(prefix + "-none"));
            for (int i = 0; i < 12; i++) {
                for (ProducerRecord<byte[], byte[]> record : Samples.of(prefix + "-none", 2, false)) {
                    producer.send(record, (got, error) ->
                        Report.produced(record, got, error, "codec", "none", "acks", -1));
                }
                for (ConsumerRecord<byte[], byte[]> each : consumer.poll(Duration.ofMillis(200))) {
                    Report.fetched(each);
                }
            }
            Report.line("note", "client instances", "ids", Arrays.asList(
                producer.clientInstanceId(Duration.ofSeconds(5)), consumer.clientInstanceId(Duration.ofSeconds(5))));
        }
    }
}
