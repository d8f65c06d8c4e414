import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * A peer of kwire's benchmarks: Kafka's own classes. The protocol is in peers/__init__.py.
 *
 * <p>Checksums are verified, every field of every record is read, and keys and values are copied into byte arrays as a
 * consumer's deserializers get them.
 */
public final class Peer {
    private interface Task {
        void run() throws Exception;
    }

    // What is made is kept here, so that the compiler cannot leave it out.
    private static volatile Object kept;
    private static volatile long sum;

    private static final OperatingSystemMXBean CLOCK =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final Map<String, Task> TASKS = new java.util.HashMap<>();
    private static long count;
    private static long total;

    private static List<byte[]> pieces(String file) throws Exception {
        ByteBuffer data = ByteBuffer.wrap(Files.readAllBytes(Path.of(file)));
        List<byte[]> found = new ArrayList<>();
        while (data.remaining() >= 4) {
            byte[] one = new byte[data.getInt()];
            data.get(one);
            found.add(one);
        }
        return found;
    }

    private static ApiMessage read(boolean request, ApiMessageType type, short version, byte[] body) {
        ApiMessage made = request ? type.newRequest() : type.newResponse();
        made.read(new ByteBufferAccessor(ByteBuffer.wrap(body)), version);
        return made;
    }

    private static byte[] write(ApiMessage message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return buffer.array();
    }

    /** Runs a task until it is compiled, which takes longer than that of the other peers. */
    private static void warm(Task task) throws Exception {
        long until = CLOCK.getProcessCpuTime() + 1_500_000_000L;
        while (CLOCK.getProcessCpuTime() < until) {
            for (int pass = 0; pass < 10; pass++) {
                task.run();
            }
        }
    }

    private static String codec(String kind, short key, short version, String file) throws Exception {
        ApiMessageType type = ApiMessageType.fromApiKey(key);
        boolean request = kind.equals("request");
        List<byte[]> bodies = pieces(file);
        List<ApiMessage> objects = new ArrayList<>();
        for (byte[] body : bodies) {
            ApiMessage one = read(request, type, version, body);
            if (!java.util.Arrays.equals(write(one, version), body)) {
                throw new IllegalStateException("it does not write what it read");
            }
            objects.add(one);
        }
        TASKS.put("decode", () -> {
            for (byte[] body : bodies) {
                kept = read(request, type, version, body);
            }
        });
        TASKS.put("encode", () -> {
            for (ApiMessage one : objects) {
                kept = write(one, version);
            }
        });
        warm(TASKS.get("decode"));
        warm(TASKS.get("encode"));
        return "";
    }

    private static int size(ByteBuffer field) {
        if (field == null) {
            return 0;
        }
        byte[] copy = new byte[field.remaining()];
        field.get(copy);
        kept = copy;
        return copy.length;
    }

    private static void readSet(byte[] data) {
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                total += record.offset() + record.timestamp() + size(record.key()) + size(record.value());
                for (Header header : record.headers()) {
                    total += header.key().length() + (header.value() == null ? 0 : header.value().length);
                }
                count++;
            }
        }
    }

    private static String records(String file) throws Exception {
        List<byte[]> sets = pieces(file);
        Task task = () -> {
            count = 0;
            total = 0;
            for (byte[] one : sets) {
                readSet(one);
            }
            sum = total;
        };
        TASKS.put("read", task);
        warm(task);
        return count + " " + total;
    }

    private static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "codec":
                return codec(words[1], Short.parseShort(words[2]), Short.parseShort(words[3]), words[4]);
            case "records":
                return records(words[1]);
            case "run":
                Task task = TASKS.get(words[1]);
                int passes = Integer.parseInt(words[2]);
                long began = CLOCK.getProcessCpuTime();
                for (int pass = 0; pass < passes; pass++) {
                    task.run();
                }
                return Long.toString(CLOCK.getProcessCpuTime() - began);
            default:
                throw new IllegalArgumentException("no such command");
        }
    }

    public static void main(String[] arguments) throws Exception {
        String java = System.getProperty("java.version");
        java.util.Properties kafka = new java.util.Properties();
        try (java.io.InputStream file = ApiMessage.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            kafka.load(file);
        }
        System.out.println("ready kafka-clients " + kafka.getProperty("version") + ", Java " + java);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            try {
                System.out.println("ok " + answer(line.split(" ")));
            } catch (Throwable error) {
                System.out.println("no " + String.valueOf(error).replace('\n', ' '));
            }
        }
    }
}
