package io.fogline.source;

import io.fogline.decode.Record;
import java.util.List;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.types.StructType;

/** One read: all there is at once, or as a stream. A batch read has no late records and no end row. */
final class FoglineScan implements Scan, Batch {
    private final SourceOptions options;
    private final StructType schema;
    private final int[] output;

    /** {@code output}: for every column of the schema, its place in the options' fields. */
    FoglineScan(SourceOptions options, StructType schema, int[] output) {
        this.options = options;
        this.schema = schema;
        this.output = output;
    }

    @Override
    public StructType readSchema() {
        return schema;
    }

    @Override
    public String description() {
        String filter = options.filter() == null ? "" : " where " + options.filter();
        return "fogline " + options.format() + " " + options.path() + filter;
    }

    @Override
    public Batch toBatch() {
        return this;
    }

    @Override
    public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
        return new FoglineStream(options, output);
    }

    @Override
    public InputPartition[] planInputPartitions() {
        Store files = Store.of(options);
        Planner planner = new Planner(options, files);
        Store.Listing listing = files.list();
        var end = planner.advance(files.firsts(), listing, Long.MAX_VALUE);
        long arrival = System.currentTimeMillis() * 1000;
        BatchContext context = new BatchContext(arrival, options.currentFraction(), BatchContext.NEVER_LATE);
        List<List<Slice>> parts = planner.split(files.firsts(), end);
        return parts.stream()
                .map(slices -> new SlicePartition(List.copyOf(slices), context, Record.NO_TIME))
                .toArray(InputPartition[]::new);
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new RowReaderFactory(options, output, null);
    }
}
