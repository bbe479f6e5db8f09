package io.fogline.source;

import org.apache.spark.sql.connector.read.streaming.PartitionOffset;

/** Where a real-time reader is: before the frame at a position, or {@code skip} rows into it. */
record LiveOffset(long position, long skip) implements PartitionOffset {}
