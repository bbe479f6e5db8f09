package io.fogline.source;

import org.apache.spark.sql.connector.read.InputPartition;

/** A log from a position on, without the first {@code skip} rows of the frame there. */
record LivePartition(long position, long skip, BatchContext context) implements InputPartition {}
