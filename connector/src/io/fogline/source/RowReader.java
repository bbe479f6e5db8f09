package io.fogline.source;

import io.fogline.decode.Record;
import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.connector.read.PartitionReader;

/** Reads a partition: its slices one after the other, then the row with a time if it has one. */
final class RowReader implements PartitionReader<InternalRow> {
    private final SlicePartition partition;
    private final SourceOptions options;
    private final int[] output;
    private final Progress progress;
    private int nextSlice;
    private SliceReader reader;
    private long time;
    private UnsafeRow row;

    /** {@code progress} may be null: a batch read reports none. */
    RowReader(SlicePartition partition, SourceOptions options, int[] output, Progress progress) {
        this.partition = partition;
        this.options = options;
        this.output = output;
        this.progress = progress;
        this.time = partition.time();
    }

    @Override
    public boolean next() throws IOException {
        while (true) {
            if (reader != null && reader.next()) {
                row = reader.row();
                return true;
            }
            closeSlice();
            if (nextSlice == partition.slices().size()) {
                return timeRow();
            }
            Slice slice = partition.slices().get(nextSlice++);
            reader = new SliceReader(slice, options, output, partition.context());
        }
    }

    private boolean timeRow() {
        if (time == Record.NO_TIME) {
            return false;
        }
        Columns nothing = new Columns(options.layout(), options.fields());
        row = new Rows(nothing, options.fields(), output, partition.context().fraction()).time(time);
        time = Record.NO_TIME;
        return true;
    }

    @Override
    public InternalRow get() {
        return row;
    }

    private void closeSlice() throws IOException {
        if (reader != null) {
            SliceReader closing = reader;
            reader = null;
            if (progress != null) {
                progress.add(closing.found());
            }
            if (options.clock() != null) {
                time = Math.max(time, closing.hidden());
            }
            closing.close();
        }
    }

    @Override
    public void close() throws IOException {
        closeSlice();
    }
}
