import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;

/** What Kafka's own client does in scenarios. Arguments: what, its arguments, and properties as NAME=VALUE. */
public class Scenes {
    public static void main(String[] all) throws Exception {
        List<String> told = new ArrayList<>();
        Properties properties = new Properties();
        for (String one : List.of(all).subList(1, all.length)) {
            if (one.contains("=")) properties.put(one.split("=", 2)[0], one.split("=", 2)[1]);
            else told.add(one);
        }
        String[] a = told.toArray(new String[0]);
        switch (all[0]) {
            case "produce": produce(a[0], number(a[1]), number(a[2]), number(a[3]), properties); break;
            case "consume": consume(a[0], number(a[1]), number(a[2]), properties); break;
            case "transactions": transactions(a[0], number(a[1]), number(a[2]), number(a[3]), properties); break;
            case "loop": loop(a[0], a[1], number(a[2]), number(a[3]), properties); break;
            case "quota": quota(a[0], number(a[1]), properties); break;
            case "lookups": lookups(a[0], number(a[1]), number(a[2]), properties); break;
            default: throw new IllegalArgumentException(all[0]);
        }
    }

    static int number(String text) {
        return Integer.parseInt(text);
    }

    static long in(int seconds) {
        return System.currentTimeMillis() + seconds * 1000L;
    }

    static KafkaProducer<byte[], byte[]> producer(Properties properties) {
        properties.put("key.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        properties.put("value.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
        return new KafkaProducer<>(properties);
    }

    static KafkaConsumer<byte[], byte[]> consumer(Properties properties) {
        properties.put("key.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        properties.put("value.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        return new KafkaConsumer<>(properties);
    }

    /** Writes for so many seconds once it knows the topic, with a pause of milliseconds behind each record of so many bytes. */
    static void produce(String topic, int seconds, int pause, int size, Properties properties) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(properties)) {
            producer.partitionsFor(topic);
            long end = in(seconds);
            for (long k = 0; System.currentTimeMillis() < end; k++) {
                producer.send(new ProducerRecord<>(topic, ("k" + k).getBytes(), new byte[size]), (done, error) -> {
                    if (error != null) System.out.println(error);
                });
                if (pause > 0) Thread.sleep(pause);
            }
        }
    }

    /** Reads for so many seconds once it has partitions, with a pause of milliseconds behind each poll. */
    static void consume(String topic, int seconds, int pause, Properties properties) throws Exception {
        long end = in(30);
        long count = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(properties)) {
            consumer.subscribe(List.of(topic));
            while (consumer.assignment().isEmpty() && System.currentTimeMillis() < end) {
                count += consumer.poll(Duration.ofMillis(200)).count();
            }
            end = in(seconds);
            while (System.currentTimeMillis() < end) {
                count += consumer.poll(Duration.ofMillis(200)).count();
                if (pause > 0) Thread.sleep(pause);
            }
        }
        System.out.println("consumed " + count);
    }

    /** So many transactions; of each `kept` one is committed and the others aborted (0: none is aborted). */
    static void transactions(String topic, int count, int kept, int pause, Properties properties) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(properties)) {
            producer.initTransactions();
            for (int k = 0; k < count; k++) {
                producer.beginTransaction();
                for (int j = 0; j < 5; j++) producer.send(new ProducerRecord<>(topic, ("k" + k).getBytes(), new byte[100]));
                producer.flush();
                Thread.sleep(pause);
                if (kept == 0 || k % kept == 0) producer.commitTransaction();
                else producer.abortTransaction();
            }
        }
    }

    /** Reads, writes and commits in transactions, as Kafka Streams does; each `aborted` one is aborted. */
    static void loop(String from, String to, int seconds, int aborted, Properties properties) throws Exception {
        Properties reads = new Properties(), writes = new Properties();
        for (String name : properties.stringPropertyNames()) {
            if (name.startsWith("producer.")) writes.put(name.substring(9), properties.get(name));
            else if (name.startsWith("consumer.")) reads.put(name.substring(9), properties.get(name));
            else {
                reads.put(name, properties.get(name));
                writes.put(name, properties.get(name));
            }
        }
        reads.put("enable.auto.commit", "false");
        reads.put("isolation.level", "read_committed");
        long end = in(seconds);
        try (KafkaProducer<byte[], byte[]> producer = producer(writes);
                KafkaConsumer<byte[], byte[]> consumer = consumer(reads)) {
            producer.initTransactions();
            consumer.subscribe(List.of(from));
            for (int k = 1; System.currentTimeMillis() < end; ) {
                ConsumerRecords<byte[], byte[]> got = consumer.poll(Duration.ofMillis(100));
                if (got.isEmpty()) continue;
                producer.beginTransaction();
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                for (ConsumerRecord<byte[], byte[]> one : got) {
                    producer.send(new ProducerRecord<>(to, one.key(), one.value()));
                    offsets.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                if (k++ % aborted != 0) {
                    producer.commitTransaction();
                    continue;
                }
                producer.abortTransaction();
                for (TopicPartition one : consumer.assignment()) {
                    OffsetAndMetadata committed = consumer.committed(Set.of(one)).get(one);
                    if (committed != null) consumer.seek(one, committed.offset());
                    else consumer.seekToBeginning(List.of(one));
                }
            }
        }
    }

    /** Lets a client_id write so many bytes a second. */
    static void quota(String client, int rate, Properties properties) throws Exception {
        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.CLIENT_ID, client));
        ClientQuotaAlteration.Op bytes = new ClientQuotaAlteration.Op("producer_byte_rate", (double) rate);
        try (Admin admin = Admin.create(properties)) {
            admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(bytes)))).all().get();
        }
    }

    /** Asks for the end of the log over and over. */
    static void lookups(String topic, int seconds, int pause, Properties properties) throws Exception {
        long end = in(seconds);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(properties)) {
            List<TopicPartition> one = List.of(new TopicPartition(topic, 0));
            while (System.currentTimeMillis() < end) {
                consumer.endOffsets(one);
                if (pause > 0) Thread.sleep(pause);
            }
        }
    }
}
