package io.fogline.source;

import java.util.List;
import org.apache.spark.sql.connector.read.InputPartition;

/** What one task reads: some slices, in order, and perhaps the end row after them. */
record SlicePartition(List<Slice> slices, BatchContext context, boolean endRow) implements InputPartition {}
