package io.fogline.sink;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A task's rows in a micro-batch: they go to the driver when the task has succeeded. */
final class GatheredRows implements DataWriter<InternalRow> {
    /** What a task hands over, by log. */
    record Gathered(Map<String, RecordList> logs) implements WriterCommitMessage {}

    private final Map<String, RecordList> logs = new HashMap<>();

    @Override
    public void write(InternalRow row) {
        logs.computeIfAbsent(row.getString(0), name -> new RecordList())
                .add(row.getUTF8String(1).getBytes(), row.getBinary(2));
    }

    @Override
    public WriterCommitMessage commit() {
        return new Gathered(logs);
    }

    @Override
    public void abort() {}

    @Override
    public void close() {}
}
