import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;
import org.apache.kafka.shaded.io.opentelemetry.proto.common.v1.KeyValue;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.Metric;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.MetricsData;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.NumberDataPoint;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ResourceMetrics;
import org.apache.kafka.shaded.io.opentelemetry.proto.metrics.v1.ScopeMetrics;
import sun.misc.Unsafe;

/**
 * A broker plug-in that accepts client metrics (KIP-714): without one, a broker does not announce the two APIs.
 *
 * It writes down what it is handed, read with the OTLP classes that Kafka brings along: one JSON object per push, with
 * the data points as arrays of name, unit, type, temporality, is_monotonic, value, start, time and attributes.
 * Properties of the broker:
 *
 *   kwire.telemetry.file     where to append
 *   kwire.telemetry.accept   the one compression type to offer to clients, by its number; all of Kafka's when absent.
 *                            Kafka has no setting for this, and its clients take the first type that is offered, so the
 *                            list is replaced in the running broker. 0 offers an empty list: clients do not compress.
 */
@SuppressWarnings({"deprecation", "removal"})
public final class TelemetryReceiver implements MetricsReporter, ClientTelemetry {
    private Path file;

    @Override
    public void configure(Map<String, ?> configs) {
        file = Path.of(String.valueOf(configs.get("kwire.telemetry.file")));
        Object accept = configs.get("kwire.telemetry.accept");
        if (accept != null) {
            byte type = Byte.parseByte(String.valueOf(accept));
            offer(type == 0 ? List.of() : List.of(type));
        }
    }

    private static void offer(List<Byte> types) {
        try {
            Field access = Unsafe.class.getDeclaredField("theUnsafe");
            access.setAccessible(true);
            Unsafe unsafe = (Unsafe) access.get(null);
            Class<?> manager = Class.forName("org.apache.kafka.server.ClientMetricsManager");
            Field offered = manager.getDeclaredField("SUPPORTED_COMPRESSION_TYPES");
            unsafe.putObject(unsafe.staticFieldBase(offered), unsafe.staticFieldOffset(offered), types);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this broker keeps its compression types elsewhere", error);
        }
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this::append;
    }

    private synchronized void append(AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        List<String> points = new ArrayList<>();
        String client = "{}";
        try {
            for (ResourceMetrics resource : MetricsData.parseFrom(payload.data().duplicate()).getResourceMetricsList()) {
                String attributes = attributes(resource.getResource().getAttributesList());
                if (!points.isEmpty() && !attributes.equals(client)) {
                    throw new IllegalStateException("two clients in one push: " + client + " and " + attributes);
                }
                client = attributes;
                for (ScopeMetrics scope : resource.getScopeMetricsList()) {
                    scope.getMetricsList().forEach(metric -> points.addAll(points(metric)));
                }
            }
            String line = "{\"client_id\":" + text(context.clientId()) + ",\"client_instance_id\":"
                + text(payload.clientInstanceId().toString()) + ",\"terminating\":" + payload.isTerminating()
                + ",\"resource_attributes\":" + client + ",\"points\":[" + String.join(",", points) + "]}";
            Files.write(file, List.of(line), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** The data points of the two kinds that Kafka's clients push; another kind is an error, so that nothing is missed. */
    private static List<String> points(Metric metric) {
        List<String> made = new ArrayList<>();
        String name = "[" + text(metric.getName()) + "," + text(metric.getUnit());
        if (metric.hasGauge()) {
            for (NumberDataPoint point : metric.getGauge().getDataPointsList()) {
                made.add(name + ",\"gauge\",null,null" + number(point));
            }
        } else if (metric.hasSum()) {
            String kind = ",\"sum\"," + text(metric.getSum().getAggregationTemporality().name()) + ","
                + metric.getSum().getIsMonotonic();
            for (NumberDataPoint point : metric.getSum().getDataPointsList()) {
                made.add(name + kind + number(point));
            }
        } else {
            throw new IllegalStateException("neither gauge nor sum: " + metric);
        }
        return made;
    }

    /** Values are text, since JSON has no NaN; times are nanoseconds since 1970. */
    private static String number(NumberDataPoint point) {
        String value = point.hasAsInt() ? Long.toString(point.getAsInt()) : Double.toString(point.getAsDouble());
        return "," + text(value) + "," + point.getStartTimeUnixNano() + "," + point.getTimeUnixNano() + ","
            + attributes(point.getAttributesList()) + "]";
    }

    private static String attributes(List<KeyValue> pairs) {
        List<String> made = new ArrayList<>();
        for (KeyValue pair : pairs) {
            made.add(text(pair.getKey()) + ":" + text(pair.getValue().getStringValue()));
        }
        return "{" + String.join(",", made) + "}";
    }

    private static String text(String value) {
        StringBuilder made = new StringBuilder("\"");
        for (char c : value.toCharArray()) {
            if (c == '"' || c == '\\') {
                made.append('\\').append(c);
            } else if (c < 0x20) {
                made.append(String.format("\\u%04x", (int) c));
            } else {
                made.append(c);
            }
        }
        return made.append('"').toString();
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
