import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * A broker plug-in that accepts client metrics (KIP-714): without one, a broker does not offer the API at all.
 *
 * It appends one JSON object per push to the file named by the broker property {@code kwire.telemetry.file}: the client's
 * instance id, whether it was the last push, the content type, and the metrics after decompression (base64).
 */
@SuppressWarnings("deprecation")
public final class TelemetryReporter implements MetricsReporter, ClientTelemetry {
    private Path file;

    @Override
    public void configure(Map<String, ?> configs) {
        file = Path.of(String.valueOf(configs.get("kwire.telemetry.file")));
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return (context, payload) -> append(payload);
    }

    private synchronized void append(ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data().duplicate();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        String line = String.format("{\"client_instance_id\":\"%s\",\"terminating\":%s,\"content_type\":\"%s\",\"metrics\":\"%s\"}%n",
            payload.clientInstanceId(), payload.isTerminating(), payload.contentType(), Base64.getEncoder().encodeToString(bytes));
        try {
            Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
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
