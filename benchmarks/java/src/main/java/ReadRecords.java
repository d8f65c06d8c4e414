import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.record.Record;
import org.apache.kafka.common.record.RecordBatch;

/**
 * Reads files of record sets with Kafka's own record classes: checksums verified, every field of every record touched,
 * keys and values copied into byte arrays as a consumer's deserializers would get them.
 *
 * <p>Arguments: rounds, then files. Prints for each file the number of records and the median processor time in
 * nanoseconds per record. The first rounds, in which the code is still being compiled, do not count.
 */
public final class ReadRecords {
    private static long sum;

    private static long read(byte[] data) {
        long count = 0;
        for (RecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
            batch.ensureValid();
            for (Record record : batch) {
                record.ensureValid();
                sum += record.offset() + record.timestamp() + size(record.key()) + size(record.value());
                for (Header header : record.headers()) {
                    sum += header.key().length() + (header.value() == null ? 0 : header.value().length);
                }
                count++;
            }
        }
        return count;
    }

    private static int size(ByteBuffer field) {
        if (field == null) {
            return 0;
        }
        byte[] copy = new byte[field.remaining()];
        field.get(copy);
        return copy.length;
    }

    public static void main(String[] arguments) throws Exception {
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        int rounds = Integer.parseInt(arguments[0]);
        for (String file : Arrays.copyOfRange(arguments, 1, arguments.length)) {
            byte[] data = Files.readAllBytes(Path.of(file));
            long count = 0;
            for (int warm = 0; warm < 30; warm++) {
                count = read(data);
            }
            double[] times = new double[rounds];
            for (int round = 0; round < rounds; round++) {
                long start = clock.getCurrentThreadCpuTime();
                for (int repeat = 0; repeat < 5; repeat++) {
                    read(data);
                }
                times[round] = (clock.getCurrentThreadCpuTime() - start) / 5.0 / count;
            }
            Arrays.sort(times);
            System.out.printf("%d %.1f%n", count, times[rounds / 2]);
        }
        if (sum == 42) {
            System.err.println("never, but the compiler does not know");
        }
    }
}
