package io.fogline.source;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** Travels to the executors and makes readers there. {@code progress} may be null. */
record RowReaderFactory(SourceOptions options, int[] output, Progress progress) implements PartitionReaderFactory {
    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
        if (partition instanceof LivePartition live) {
            return new LiveReader(live, options, output, progress);
        }
        if (options.panes() != null) {
            return new PaneReader((SlicePartition) partition, options, progress);
        }
        return new RowReader((SlicePartition) partition, options, output, progress);
    }
}
