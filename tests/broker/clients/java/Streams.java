// A Kafka Streams application of two instances, with group.protocol=streams: java -cp JARS Streams.java BOOTSTRAP TOPIC FOLDER
//
// Counts the values of TOPIC by their first word into TOPIC-counts. Prints the tasks of each instance when both have some,
// closes one instance, and prints the tasks of the other one when it has all of them. Then prints the counts.

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;

public class Streams {
    static KafkaStreams instance(String[] words, String name, int port) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", words[0]);
        properties.put("application.id", "app");
        properties.put("client.id", name);
        properties.put("group.protocol", "streams");
        properties.put("state.dir", words[2] + "/" + name);
        properties.put("application.server", "localhost:" + port);
        properties.put("auto.offset.reset", "earliest");
        properties.put("commit.interval.ms", "200");
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(words[1], Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((key, value) -> value.split(" ")[0], Grouped.with(Serdes.String(), Serdes.String()))
            .count(Materialized.<String, Long>as(Stores.inMemoryKeyValueStore("counts"))
                .withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(words[1] + "-counts", Produced.with(Serdes.String(), Serdes.Long()));
        return new KafkaStreams(builder.build(), properties);
    }

    static TreeSet<String> tasks(KafkaStreams of) {
        TreeSet<String> found = new TreeSet<>();
        of.metadataForLocalThreads().forEach(t -> t.activeTasks().forEach(task -> found.add(task.taskId().toString())));
        return found;
    }

    static void await(BooleanSupplier what) throws Exception {
        long until = System.currentTimeMillis() + 40_000;
        while (!what.getAsBoolean() && System.currentTimeMillis() < until) {
            Thread.sleep(50);
        }
    }

    public static void main(String[] words) throws Exception {
        Map<String, Object> common = Map.of("bootstrap.servers", words[0]);
        try (var producer = new KafkaProducer<>(common, new StringSerializer(), new StringSerializer())) {
            for (int number = 0; number < 40; number++) {
                producer.send(new ProducerRecord<>(words[1], "k" + number, "word" + number % 5 + " " + number));
            }
        }
        KafkaStreams first = instance(words, "one", 7001);
        first.start();
        await(() -> tasks(first).size() == 8);
        System.out.println("alone " + tasks(first));
        KafkaStreams second = instance(words, "two", 7002);
        second.start();
        await(() -> tasks(first).size() == 4 && tasks(second).size() == 4);
        System.out.println("first " + tasks(first));
        System.out.println("second " + tasks(second));
        try (Admin admin = Admin.create(common)) {
            var group = admin.describeStreamsGroups(List.of("app")).describedGroups().get("app").get();
            System.out.println("state " + group.groupState() + " members " + group.members().size()
                + " subtopologies " + group.subtopologies().size());
        }
        first.close(Duration.ofSeconds(20));
        await(() -> tasks(second).size() == 8);
        System.out.println("left " + tasks(second));
        TreeMap<String, Long> counts = new TreeMap<>();
        Map<String, Object> reading =
            new HashMap<>(Map.of("bootstrap.servers", words[0], "group.id", "g", "auto.offset.reset", "earliest"));
        try (var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new LongDeserializer())) {
            consumer.subscribe(List.of(words[1] + "-counts"));
            await(() -> {
                consumer.poll(Duration.ofMillis(100)).forEach(one -> counts.put(one.key(), one.value()));
                return counts.values().stream().mapToLong(one -> one).sum() == 40;
            });
        }
        System.out.println("counts " + counts);
        second.close(Duration.ofSeconds(20));
    }
}
