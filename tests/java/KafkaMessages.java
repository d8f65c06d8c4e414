import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageSizeAccumulator;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Reads and writes messages with Kafka's own generated classes, on behalf of the tests in tests/kafka.
 *
 * <p>Standard input holds one command per line, its parts separated by tabs; an empty line has the commands before it
 * carried out. Each gives one line on standard output, in order. A failure is an exclamation mark and what Kafka said.
 *
 * <pre>
 * versions CLASS               -> lowest TAB highest supported version
 * accepts  CLASS VERSION HEX   -> bytes left after the message TAB the bytes that Kafka writes for it, in hex, or why not
 * read     CLASS VERSION HEX   -> the message in JSON TAB the bytes that Kafka writes for it, in hex
 * records  HEX                 -> how many records Kafka reads from a record set, each batch checked
 * write    CLASS VERSION JSON  -> the bytes that Kafka writes for the JSON, in hex
 * </pre>
 *
 * <p>JSON is that of the generated converters: base64 for bytes, their base64 for uuids. Commands wait for the empty line
 * so that neither side blocks on a full pipe.
 */
public final class KafkaMessages {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Map<String, Class<?>> CLASSES = new HashMap<>();
    private static final Map<String, Method> CONVERTERS = new HashMap<>();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        BufferedWriter out = new BufferedWriter(new OutputStreamWriter(System.out, StandardCharsets.UTF_8));
        List<String> commands = new ArrayList<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (!line.isEmpty()) {
                commands.add(line);
                continue;
            }
            for (String command : commands) {
                out.write(answer(command.split("\t")));
                out.write('\n');
            }
            out.flush();
            commands.clear();
        }
    }

    private static String answer(String[] parts) {
        try {
            switch (parts[0]) {
                case "versions": {
                    Message message = create(parts[1]);
                    return message.lowestSupportedVersion() + "\t" + message.highestSupportedVersion();
                }
                case "records":
                    return "" + records(HexFormat.of().parseHex(parts.length > 1 ? parts[1] : ""));
                case "accepts": {
                    short version = Short.parseShort(parts[2]);
                    ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(parts.length > 3 ? parts[3] : ""));
                    Message message = create(parts[1]);
                    message.read(new ByteBufferAccessor(buffer), version);
                    try {
                        return buffer.remaining() + "\t" + bytes(message, version);
                    } catch (RuntimeException e) {
                        return buffer.remaining() + "\t" + oneLine(e);
                    }
                }
                case "read": {
                    short version = Short.parseShort(parts[2]);
                    ByteBuffer buffer = ByteBuffer.wrap(HexFormat.of().parseHex(parts.length > 3 ? parts[3] : ""));
                    Message message = create(parts[1]);
                    message.read(new ByteBufferAccessor(buffer), version);
                    if (buffer.hasRemaining()) {
                        return "!" + buffer.remaining() + " bytes left";
                    }
                    return json(parts[1], message, version) + "\t" + bytes(message, version);
                }
                case "write": {
                    short version = Short.parseShort(parts[2]);
                    Object message = converter(parts[1], "read", JsonNode.class).invoke(null, MAPPER.readTree(parts[3]), version);
                    return bytes((Message) message, version);
                }
                default:
                    return "!unknown command " + parts[0];
            }
        } catch (InvocationTargetException e) {
            return oneLine(e.getCause());
        } catch (Throwable e) {
            return oneLine(e);
        }
    }

    /** By name, because newer releases have these classes in another package. */
    private static int records(byte[] data) throws Exception {
        Class<?> sets;
        try {
            sets = Class.forName("org.apache.kafka.common.record.internal.MemoryRecords");
        } catch (ClassNotFoundException e) {
            sets = Class.forName("org.apache.kafka.common.record.MemoryRecords");
        }
        Class<?> batches = Class.forName(sets.getPackageName() + ".RecordBatch");
        Method check = batches.getMethod("ensureValid");
        Object set = sets.getMethod("readableRecords", ByteBuffer.class).invoke(null, ByteBuffer.wrap(data));
        int count = 0;
        for (Object batch : (Iterable<?>) sets.getMethod("batches").invoke(set)) {
            check.invoke(batch);
            for (Object record : (Iterable<?>) batch) {
                count += record == null ? 0 : 1;
            }
        }
        return count;
    }

    private static String oneLine(Throwable e) {
        return "!" + e.toString().replaceAll("\\s+", " ");
    }

    private static Message create(String name) throws Exception {
        return (Message) find(name).getDeclaredConstructor().newInstance();
    }

    private static Class<?> find(String name) throws ClassNotFoundException {
        Class<?> found = CLASSES.get(name);
        if (found == null) {
            found = Class.forName(name);
            CLASSES.put(name, found);
        }
        return found;
    }

    private static Method converter(String name, String method, Class<?> from) throws Exception {
        Method found = CONVERTERS.get(name + method);
        if (found == null) {
            found = find(name + "JsonConverter").getMethod(method, from, short.class);
            CONVERTERS.put(name + method, found);
        }
        return found;
    }

    private static String json(String name, Message message, short version) throws Exception {
        return MAPPER.writeValueAsString(converter(name, "write", find(name)).invoke(null, message, version));
    }

    private static String bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        MessageSizeAccumulator size = new MessageSizeAccumulator();
        message.addSize(size, cache, version);
        ByteBuffer buffer = ByteBuffer.allocate(size.totalSize());
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return HexFormat.of().formatHex(buffer.array(), 0, buffer.position());
    }
}
