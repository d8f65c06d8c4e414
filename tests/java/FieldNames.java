import java.lang.reflect.Field;
import java.lang.reflect.Method;

/**
 * The names of fields in a release whose classes keep schemas in arrays (0.9.0 to 0.10.2): one line for each layout.
 *
 * <pre>
 * REQUESTS|RESPONSES TAB KEY TAB VERSION TAB name name(name name) ...
 * </pre>
 */
public final class FieldNames {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    public static void main(String[] args) throws Exception {
        for (String which : new String[] {"REQUESTS", "RESPONSES"}) {
            Object[] apis = (Object[]) Class.forName(PROTOCOL + "Protocol").getField(which).get(null);
            for (int key = 0; key < apis.length; key++) {
                Object[] versions = (Object[]) apis[key];
                for (int version = 0; version < versions.length; version++) {
                    if (versions[version] != null) {
                        System.out.println(which + "\t" + key + "\t" + version + "\t" + names(versions[version]));
                    }
                }
            }
        }
    }

    private static String names(Object schema) throws Exception {
        StringBuilder out = new StringBuilder();
        Field name = Class.forName(PROTOCOL + "types.Field").getField("name");
        Method typeOf = Class.forName(PROTOCOL + "types.Field").getMethod("type");
        Class<?> array = Class.forName(PROTOCOL + "types.ArrayOf");
        for (Object field : (Object[]) schema.getClass().getMethod("fields").invoke(schema)) {
            Object type = typeOf.invoke(field);
            Object inner = array.isInstance(type) ? array.getMethod("type").invoke(type) : type;
            out.append(out.length() == 0 ? "" : " ").append(name.get(field));
            if (inner.getClass() == schema.getClass()) {
                out.append('(').append(names(inner)).append(')');
            }
        }
        return out.toString();
    }
}
