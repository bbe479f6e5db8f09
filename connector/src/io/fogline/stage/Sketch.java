package io.fogline.stage;

import org.apache.datasketches.hll.HllSketch;

/** An HLL sketch of distinct values and the number of records behind it. */
record Sketch(HllSketch sketch, double count) {}
