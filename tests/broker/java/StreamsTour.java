import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * A Streams application that counts the values of PREFIX-none by their length into PREFIX-counts: repartition and
 * changelog topics, a group with Streams' own assignor or (group.protocol=streams) the broker's.
 *
 * <pre>StreamsTour BOOTSTRAP PREFIX SECONDS FOLDER [key=value ...]</pre>
 */
public final class StreamsTour {
    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("application.id", args[1] + "-streams");
        properties.put("state.dir", args[3]);
        properties.put("enable.metrics.push", "false");
        properties.put("auto.offset.reset", "earliest");
        properties.put("commit.interval.ms", "500");
        properties.put("processing.guarantee", "exactly_once_v2");
        for (int i = 4; i < args.length; i++) {
            String[] pair = args[i].split("=", 2);
            properties.put(pair[0], pair[1]);
        }
        Report.line("note", "version", "version", "kafka-streams " + AppInfoParser.getVersion());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(List.of(args[1] + "-none"),
                org.apache.kafka.streams.kstream.Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
            .filter((key, value) -> value != null)
            .map((key, value) -> new org.apache.kafka.streams.KeyValue<>(String.valueOf(value.length), value))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.ByteArray()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> count.toString().getBytes(StandardCharsets.UTF_8))
            .to(args[1] + "-counts", Produced.with(Serdes.String(), Serdes.ByteArray()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
            streams.start();
            Thread.sleep(Duration.ofSeconds(Long.parseLong(args[2])).toMillis());
            Report.line("note", "streams", "state", streams.state().toString());
            streams.close(Duration.ofSeconds(10));
        }
    }
}
