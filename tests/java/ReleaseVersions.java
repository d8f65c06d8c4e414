import java.io.File;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Says which versions of which APIs the brokers of Kafka releases accept and announce, asked of the classes of each release.
 *
 * <p>Arguments are RELEASE=JAR:JAR..., one for each release; each has a class loader of its own. A line of standard output is
 *
 * <pre>
 * RELEASE TAB LISTENER TAB KEY TAB NAME TAB LOWEST TAB HIGHEST TAB LOWEST_ANNOUNCED
 * </pre>
 *
 * <p>where LISTENER is zookeeper, broker or controller. How a release says it has changed five times: objects of the Scala
 * core (to 0.8.2), arrays of schemas (to 0.10.2), methods of ApiKeys (from 0.11), listeners (from 2.8), and versions
 * that are not enabled (from 3.5) or announced without being accepted (from 4.0).
 */
public final class ReleaseVersions {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    /** Requests of the Scala core by the name of their key. */
    private static final Map<String, String> CORE = Map.ofEntries(
        Map.entry("Produce", "ProducerRequest"), Map.entry("Fetch", "FetchRequest"),
        Map.entry("Offsets", "OffsetRequest"), Map.entry("Metadata", "TopicMetadataRequest"),
        Map.entry("LeaderAndIsr", "LeaderAndIsrRequest"), Map.entry("StopReplica", "StopReplicaRequest"),
        Map.entry("UpdateMetadata", "UpdateMetadataRequest"), Map.entry("ControlledShutdown", "ControlledShutdownRequest"),
        Map.entry("OffsetCommit", "OffsetCommitRequest"), Map.entry("OffsetFetch", "OffsetFetchRequest"),
        Map.entry("ConsumerMetadata", "ConsumerMetadataRequest"));

    public static void main(String[] args) throws Exception {
        for (String arg : args) {
            String release = arg.substring(0, arg.indexOf('='));
            List<URL> jars = new ArrayList<>();
            for (String jar : arg.substring(release.length() + 1).split(File.pathSeparator)) {
                jars.add(new File(jar).toURI().toURL());
            }
            try (URLClassLoader loader = new URLClassLoader(jars.toArray(new URL[0]), ClassLoader.getPlatformClassLoader())) {
                if (release.startsWith("0.8.")) {
                    core(release, loader);
                } else {
                    clients(release, loader);
                }
            }
        }
    }

    private static void line(String release, String listener, Object key, String name, int low, int high, int announced) {
        if (low <= high) {
            System.out.println(release + "\t" + listener + "\t" + key + "\t" + name + "\t" + low + "\t" + high + "\t" + announced);
        }
    }

    /** The core of 0.8 reads every version up to its own, and asks nobody whether it knows it. */
    private static void core(String release, ClassLoader loader) throws Exception {
        Object keys = module(loader, "kafka.api.RequestKeys$");
        Map<Integer, String> handled = new TreeMap<>();
        byte[] apis;
        try (var in = loader.getResourceAsStream("kafka/server/KafkaApis.class")) {
            apis = in.readAllBytes();
        }
        String pool = new String(apis, java.nio.charset.StandardCharsets.ISO_8859_1);
        for (String name : CORE.keySet()) {
            // 0.8.2 has keys and parsers for the group requests to come, which its KafkaApis does not handle.
            if (pool.contains(name + "Key")) {
                handled.put(((Number) keys.getClass().getMethod(name + "Key").invoke(keys)).intValue(), name);
            }
        }
        for (Map.Entry<Integer, String> one : handled.entrySet()) {
            Object request = module(loader, "kafka.api." + CORE.get(one.getValue()) + "$");
            int version = ((Number) request.getClass().getMethod("CurrentVersion").invoke(request)).intValue();
            line(release, "zookeeper", one.getKey(), one.getValue(), 0, version, 0);
        }
    }

    private static Object module(ClassLoader loader, String name) throws Exception {
        return Class.forName(name, true, loader).getField("MODULE$").get(null);
    }

    private static void clients(String release, ClassLoader loader) throws Exception {
        Class<?> keys = Class.forName(PROTOCOL + "ApiKeys", true, loader);
        for (Object key : keys.getEnumConstants()) {
            Object id = keys.getField("id").get(key);
            String name = (String) keys.getField("name").get(key);
            Field enabled = field(keys, "isEnabled");
            if (enabled != null && !enabled.getBoolean(key)) {
                continue;
            }
            int[] range = range(keys, key, ((Number) id).intValue(), loader);
            Class<?> listeners = find(loader, "org.apache.kafka.common.message.ApiMessageType$ListenerType");
            if (listeners == null) {
                line(release, "zookeeper", id, name, range[0], range[1], range[0]);
                continue;
            }
            for (Object listener : listeners.getEnumConstants()) {
                if (!(Boolean) keys.getMethod("inScope", listeners).invoke(key, listener)) {
                    continue;
                }
                int announced = range[0];
                Method response = method(keys, "toApiVersionForApiResponse", boolean.class, listeners);
                if (response != null) {
                    Optional<?> made = (Optional<?>) response.invoke(key, false, listener);
                    if (made.isEmpty()) {
                        continue;
                    }
                    announced = ((Number) made.get().getClass().getMethod("minVersion").invoke(made.get())).intValue();
                }
                String where = listener.toString().equals("ZK_BROKER") ? "zookeeper" : listener.toString().toLowerCase();
                line(release, where, id, name, range[0], range[1], announced);
            }
        }
    }

    /** Lowest and highest version that is served without being asked to enable unstable ones. */
    private static int[] range(Class<?> keys, Object key, int id, ClassLoader loader) throws Exception {
        Method oldest = method(keys, "oldestVersion");
        if (oldest == null) {
            Object schemas = Array.get(Class.forName(PROTOCOL + "Protocol", true, loader).getField("REQUESTS").get(null), id);
            int low = 0;
            while (low < Array.getLength(schemas) && Array.get(schemas, low) == null) {
                low++;
            }
            return new int[] {low, Array.getLength(schemas) - 1};
        }
        Method stable = method(keys, "latestVersion", boolean.class);
        Object latest = stable == null ? keys.getMethod("latestVersion").invoke(key) : stable.invoke(key, false);
        int low = ((Number) oldest.invoke(key)).intValue();
        int high = ((Number) latest).intValue();
        return new int[] {low, high};
    }

    private static Class<?> find(ClassLoader loader, String name) {
        try {
            return Class.forName(name, true, loader);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static Method method(Class<?> of, String name, Class<?>... parameters) {
        try {
            return of.getMethod(name, parameters);
        } catch (NoSuchMethodException e) {
            return null;
        }
    }

    private static Field field(Class<?> of, String name) {
        try {
            return of.getField(name);
        } catch (NoSuchFieldException e) {
            return null;
        }
    }
}
