package io.fogline.sink;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A task's rows in real time: each is on its way to the disk at once, and there when the task commits. */
final class LiveRows implements DataWriter<InternalRow> {
    /** Nothing to tell: the rows are written. */
    record Written() implements WriterCommitMessage {}

    private final String root;
    private final long source;
    private final Muted muted;
    private final Map<String, SharedLog> logs = new HashMap<>();

    LiveRows(String root, long source, Muted muted) {
        this.root = root;
        this.source = source;
        this.muted = muted;
    }

    @Override
    public void write(InternalRow row) throws IOException {
        String name = row.getString(0);
        if (muted.has(name)) {
            letGo(name);
            return;
        }
        SharedLog log = logs.get(name);
        if (log == null) {
            log = SharedLog.of(root, name);
            logs.put(name, log);
        }
        log.add(source, row.getUTF8String(1).getBytes(), row.getBinary(2));
    }

    /** Another query may write it from now on, be it from another process. */
    private void letGo(String name) throws IOException {
        SharedLog log = logs.remove(name);
        if (log != null) {
            log.release();
        }
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
        for (SharedLog log : logs.values()) {
            log.flush();
        }
        return new Written();
    }

    @Override
    public void abort() {}

    @Override
    public void close() throws IOException {
        IOException problem = null;
        for (SharedLog log : logs.values()) {
            try {
                log.release();
            } catch (IOException e) {
                problem = problem == null ? e : problem;
            }
        }
        logs.clear();
        if (problem != null) {
            throw problem;
        }
    }
}
