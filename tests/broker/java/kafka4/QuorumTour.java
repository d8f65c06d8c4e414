import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.RaftVoterEndpoint;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.utils.AppInfoParser;

/**
 * Changes of the voters of a KRaft quorum: adds an observer as a voter, then removes it (KIP-853).
 *
 * <pre>QuorumTour BOOTSTRAP CONTROLLERS OBSERVER_ID HOST PORT</pre>
 *
 * CONTROLLERS are the bootstrap addresses of the controllers themselves: they are described as well.
 */
public final class QuorumTour {
    private interface Call {
        KafkaFuture<?> run() throws Exception;
    }

    private static void attempt(String name, Call call) {
        try {
            call.run().get(20, TimeUnit.SECONDS);
            Report.line("note", "admin", "call", name, "error", null);
        } catch (Exception error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            Report.line("note", "admin", "call", name, "error", cause.getClass().getSimpleName());
        }
    }

    private static Admin admin(String key, String value) {
        Properties properties = new Properties();
        properties.put(key, value);
        properties.put("enable.metrics.push", "false");
        properties.put("client.id", "quorum-tour");
        return Admin.create(properties);
    }

    public static void main(String[] args) throws Exception {
        int id = Integer.parseInt(args[2]);
        Report.line("note", "version", "version", "kafka-clients " + AppInfoParser.getVersion());
        try (Admin admin = admin("bootstrap.servers", args[0])) {
            Uuid directory = null;
            for (int i = 0; i < 50 && directory == null; i++) {
                directory = admin.describeMetadataQuorum().quorumInfo().get().observers().stream()
                    .filter(each -> each.replicaId() == id).map(each -> each.replicaDirectoryId()).findFirst().orElse(null);
                Thread.sleep(200);
            }
            Uuid found = directory;
            RaftVoterEndpoint endpoint = new RaftVoterEndpoint("CONTROLLER", args[3], Integer.parseInt(args[4]));
            attempt("addRaftVoter", () -> admin.addRaftVoter(id, found, Set.of(endpoint)).all());
            attempt("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo());
            attempt("removeRaftVoter", () -> admin.removeRaftVoter(id, found).all());
        }
        try (Admin admin = admin("bootstrap.controllers", args[1])) {
            attempt("describeCluster (controllers)", () -> admin.describeCluster().nodes());
            attempt("describeMetadataQuorum (controllers)", () -> admin.describeMetadataQuorum().quorumInfo());
            attempt("describeFeatures (controllers)", () -> admin.describeFeatures().featureMetadata());
        }
    }
}
