// Values that Java's serializers make, one JSON object a line: run by record_values.py.
//
//   java -cp "JARS/*" JavaValues.java apicurio URL    serializers of Apicurio, against a registry at URL
//   java -cp "JARS/*" JavaValues.java glue GUID       the encoder of AWS Glue
import java.io.ByteArrayOutputStream;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;

public class JavaValues {
    static final HexFormat HEX = HexFormat.of();

    static void print(String name, List<String[]> headers, byte[] value) {
        StringBuilder pairs = new StringBuilder();
        for (String[] one : headers) {
            pairs.append(pairs.length() == 0 ? "" : ",").append("[\"" + one[0] + "\",\"" + one[1] + "\"]");
        }
        System.out.println("{\"name\":\"" + name + "\",\"headers\":[" + pairs + "],\"value\":\"" + HEX.formatHex(value) + "\"}");
    }

    static GenericRecord order(Schema schema, long id, String customer, String note, boolean lines) {
        GenericRecord made = new GenericData.Record(schema);
        made.put("id", id);
        made.put("customer", customer);
        made.put("note", note);
        Schema line = schema.getField("lines").schema().getElementType();
        GenericRecord one = new GenericData.Record(line);
        one.put("sku", "a");
        one.put("n", 2);
        made.put("lines", lines ? List.of(one) : List.of());
        made.put("tags", lines ? Map.of("k", "v") : Map.of());
        return made;
    }

    public static void main(String[] args) throws Exception {
        Schema schema = new Schema.Parser().parse(System.getenv("ORDER"));
        List<GenericRecord> orders =
            List.of(order(schema, 1, "Grete", null, true), order(schema, -(1L << 40), "Zo\u00eb \"x\"", "n", false));
        if (args[0].equals("glue")) {
            Glue.run(UUID.fromString(args[1]), schema, orders);
        } else {
            Apicurio.run(args[1], orders);
        }
    }

    static byte[] encoded(Schema schema, GenericRecord order) throws Exception {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
        new GenericDatumWriter<GenericRecord>(schema).write(order, encoder);
        encoder.flush();
        return out.toByteArray();
    }

    static class Glue {
        static void run(UUID id, Schema schema, List<GenericRecord> orders) throws Exception {
            for (String compression : List.of("NONE", "ZLIB")) {
                Map<String, Object> config = new HashMap<>();
                config.put("region", "eu-west-1");
                config.put("compression", compression);
                Class<?> configuration =
                    Class.forName("com.amazonaws.services.schemaregistry.common.configs.GlueSchemaRegistryConfiguration");
                Object made = configuration.getConstructor(Map.class).newInstance(config);
                Class<?> kind =
                    Class.forName("com.amazonaws.services.schemaregistry.serializers.SerializationDataEncoder");
                Object encoder = kind.getConstructor(configuration).newInstance(made);
                for (GenericRecord order : orders) {
                    Object value = kind.getMethod("write", byte[].class, UUID.class)
                        .invoke(encoder, encoded(schema, order), id);
                    print("glue, " + compression.toLowerCase(), List.of(), (byte[]) value);
                }
            }
        }
    }

    static class Apicurio {
        static void run(String url, List<GenericRecord> orders) throws Exception {
            Map<String, Map<String, Object>> modes = new java.util.LinkedHashMap<>();
            modes.put("prefix", Map.of());
            modes.put("prefix, legacy ids", Map.of(
                "apicurio.registry.id-handler", "io.apicurio.registry.serde.Legacy8ByteIdHandler"));
            modes.put("header", Map.of("apicurio.registry.headers.enabled", true));
            modes.put("header, global ids", Map.of(
                "apicurio.registry.headers.enabled", true, "apicurio.registry.use-id", "globalId"));
            for (Map.Entry<String, Map<String, Object>> mode : modes.entrySet()) {
                Class<?> headersKind = Class.forName("org.apache.kafka.common.header.internals.RecordHeaders");
                Map<String, Object> config = new HashMap<>(mode.getValue());
                config.put("apicurio.registry.url", url);
                config.put("apicurio.registry.auto-register", true);
                Object serializer =
                    Class.forName("io.apicurio.registry.serde.avro.AvroKafkaSerializer").getConstructor().newInstance();
                serializer.getClass().getMethod("configure", Map.class, boolean.class).invoke(serializer, config, false);
                Class<?> headersType = Class.forName("org.apache.kafka.common.header.Headers");
                for (GenericRecord order : orders) {
                    Object headers = headersKind.getConstructor().newInstance();
                    Object value = serializer.getClass()
                        .getMethod("serialize", String.class, headersType, Object.class)
                        .invoke(serializer, "orders", headers, order);
                    List<String[]> pairs = new java.util.ArrayList<>();
                    for (Object header : (Iterable<?>) headers) {
                        Class<?> one = Class.forName("org.apache.kafka.common.header.Header");
                        byte[] data = (byte[]) one.getMethod("value").invoke(header);
                        pairs.add(new String[] {(String) one.getMethod("key").invoke(header), HEX.formatHex(data)});
                    }
                    print("apicurio, " + mode.getKey(), pairs, (byte[]) value);
                }
            }
        }
    }
}
