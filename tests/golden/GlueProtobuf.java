// Values of Protobuf that AWS Glue's serializer makes, one JSON object a line: run by record_values.py.
//
//   java -cp "JARS/*" GlueProtobuf.java GUID DESCRIPTOR    messages of a descriptor set of protoc, in base64
//
// The first line is the schema, as the serializer would register it.
import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import java.util.Base64;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;

public class GlueProtobuf {
    static final String PACKAGE = "com.amazonaws.services.schemaregistry.";

    public static void main(String[] args) throws Exception {
        UUID id = UUID.fromString(args[0]);
        FileDescriptorSet set = FileDescriptorSet.parseFrom(Base64.getDecoder().decode(args[1]));
        FileDescriptor file = FileDescriptor.buildFrom(set.getFile(0), new FileDescriptor[0]);
        boolean first = true;
        for (String compression : List.of("NONE", "ZLIB")) {
            Map<String, Object> config = new HashMap<>();
            config.put("region", "eu-west-1");
            config.put("compression", compression);
            Class<?> configuration = Class.forName(PACKAGE + "common.configs.GlueSchemaRegistryConfiguration");
            Object configured = configuration.getConstructor(Map.class).newInstance(config);
            Class<?> kind = Class.forName(PACKAGE + "serializers.protobuf.ProtobufSerializer");
            Object serializer = kind.getConstructor(configuration).newInstance(configured);
            Class<?> encoding = Class.forName(PACKAGE + "serializers.SerializationDataEncoder");
            Object encoder = encoding.getConstructor(configuration).newInstance(configured);
            // A line for each message: its name in the file, and its bytes in hex.
            for (String line : System.getenv("MESSAGES").split("\n")) {
                String[] parts = line.split(" ", -1);
                Descriptor descriptor = file.findMessageTypeByName(parts[0].split("\\.")[0]);
                for (int at = 1; at < parts[0].split("\\.").length; at++) {
                    descriptor = descriptor.findNestedTypeByName(parts[0].split("\\.")[at]);
                }
                ByteString data = ByteString.copyFrom(HexFormat.of().parseHex(parts[1]));
                DynamicMessage message = DynamicMessage.parseFrom(descriptor, data);
                if (first) {
                    Object text = kind.getMethod("getSchemaDefinition", Object.class).invoke(serializer, message);
                    System.out.println("{\"schema\":\""
                        + Base64.getEncoder().encodeToString(((String) text).getBytes("UTF-8")) + "\"}");
                    first = false;
                }
                byte[] payload = (byte[]) kind.getMethod("serialize", Object.class).invoke(serializer, message);
                byte[] value = (byte[]) encoding.getMethod("write", byte[].class, UUID.class).invoke(encoder, payload, id);
                System.out.println("{\"name\":\"" + parts[0] + ", " + compression.toLowerCase()
                    + "\",\"headers\":[],\"value\":\"" + HexFormat.of().formatHex(value) + "\"}");
            }
        }
    }
}
