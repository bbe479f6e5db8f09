package io.fogline.results;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.commons.io.output.DeferredFileOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.unsafe.types.UTF8String;

/** A task's results, which come sorted, into a run; see {@link RunReader} for its form. */
final class RunWriter implements DataWriter<InternalRow> {
    private static final int IN_MEMORY = 1 << 20;
    private static final int BUFFER = 1 << 16;

    private final DeferredFileOutputStream target;
    private final DataOutputStream out;
    private final Map<UTF8String, long[]> counts = new HashMap<>();

    RunWriter(String folder) {
        target = DeferredFileOutputStream.builder()
                .setThreshold(IN_MEMORY)
                .setDirectory(Path.of(folder))
                .setPrefix("run")
                .get();
        out = new DataOutputStream(new BufferedOutputStream(target, BUFFER));
    }

    @Override
    public void write(InternalRow row) throws IOException {
        UTF8String insight = row.getUTF8String(1);
        UTF8String key = row.getUTF8String(2);
        UTF8String text = row.getUTF8String(3);
        count(insight);
        out.writeLong(row.getLong(0));
        out.writeInt(insight.numBytes());
        out.writeInt(key.numBytes());
        out.writeInt(text.numBytes());
        insight.writeTo(out);
        key.writeTo(out);
        text.writeTo(out);
    }

    private void count(UTF8String insight) {
        long[] known = counts.get(insight);
        if (known == null) {
            counts.put(insight.copy(), known = new long[1]);
        }
        known[0]++;
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        out.close();
        Map<String, Long> named = new HashMap<>();
        counts.forEach((insight, number) -> named.put(insight.toString(), number[0]));
        return target.isInMemory()
                ? new Run(target.getData(), null, named)
                : new Run(null, target.getFile().getPath(), named);
    }

    @Override
    public void abort() throws IOException {
        out.close();
        if (!target.isInMemory()) {
            target.getFile().delete();
        }
    }

    @Override
    public void close() {}
}
