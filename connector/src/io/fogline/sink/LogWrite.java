package io.fogline.sink;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * One query's writing. In micro-batches tasks only gather their rows, and the driver appends those of
 * a batch as one commit per log, unless the log has that batch already.
 */
record LogWrite(String root, String query, boolean live, String muted) implements StreamingWrite {
    @Override
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        long source = source();
        String folder = root;
        String unheard = muted;
        return live
                ? (partition, task, epoch) -> new LiveRows(folder, source, new Muted(unheard))
                : (partition, task, epoch) -> new GatheredRows();
    }

    @Override
    public boolean useCommitCoordinator() {
        return !live;
    }

    /** The query's identity in the log; it stays the same as long as the checkpoint does. */
    private long source() {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(query.getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(sum).getLong() | 1;
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void commit(long epoch, WriterCommitMessage[] messages) {
        if (live) {
            return;
        }
        Map<String, RecordList> logs = new TreeMap<>();
        for (WriterCommitMessage message : messages) {
            if (message instanceof GatheredRows.Gathered gathered) {
                gathered.logs().forEach((log, records) ->
                        logs.computeIfAbsent(log, name -> new RecordList()).addAll(records));
            }
        }
        long source = source();
        Muted unheard = new Muted(muted);
        logs.forEach((log, records) -> {
            try {
                if (!unheard.has(log)) {
                    commit(log, source, epoch, records);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e.getMessage(), e);
            }
        });
    }

    private void commit(String log, long source, long epoch, RecordList records) throws IOException {
        SharedLog shared = SharedLog.of(root, log);
        try {
            shared.commit(source, epoch, records);
        } finally {
            shared.release();
        }
    }

    @Override
    public void abort(long epoch, WriterCommitMessage[] messages) {}
}
