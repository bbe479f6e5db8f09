package io.fogline.source;

import org.apache.spark.sql.connector.read.InputPartition;

/** A log from a position on, without the first {@code skip} rows of the frame there, for so long at most. */
record LivePartition(long position, long skip, long lengthMs, BatchContext context) implements InputPartition {}
