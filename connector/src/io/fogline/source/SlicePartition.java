package io.fogline.source;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/**
 * What one task reads: some slices, in order, and perhaps a row after them that holds nothing but a
 * time.
 *
 * @param time of that row, in microseconds; {@link io.fogline.decode.Record#NO_TIME} for none
 */
record SlicePartition(List<Slice> slices, BatchContext context, long time) implements InputPartition {}
