import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescription;
import org.apache.kafka.coordinator.group.api.streams.StreamsGroupTopologyDescriptionPlugin;

/** A broker plug-in that keeps the topologies of streams groups in memory: without one, a broker refuses them. */
public final class TopologyKeeper implements StreamsGroupTopologyDescriptionPlugin {
    private final Map<String, StreamsGroupTopologyDescription> kept = new ConcurrentHashMap<>();

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public CompletableFuture<Void> setTopology(String group, int epoch, StreamsGroupTopologyDescription topology) {
        kept.put(group, topology);
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<Void> deleteTopology(String group) {
        kept.remove(group);
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletableFuture<StreamsGroupTopologyDescription> getTopology(String group, int epoch) {
        return CompletableFuture.completedFuture(kept.get(group));
    }

    @Override
    public void close() {}
}
