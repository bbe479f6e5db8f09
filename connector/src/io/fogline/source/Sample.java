package io.fogline.source;

import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;

/**
 * Content hashes (XXH64) and the sampling decisions made from them. The same message gets the same
 * decision everywhere and always, and a message kept at a fraction is kept at every larger one.
 */
final class Sample {
    private static final double UNIT = 0x1p-53;

    private Sample() {}

    static long hash(byte[] bytes, int from, int to, long seed) {
        return XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET + from, to - from, seed);
    }

    /** The hash of one record of a message; mixed again, so that it tells nothing about sampling. */
    static long hash(long message, int record) {
        return XXH64.hashLong(record, message);
    }

    static boolean keeps(double fraction, byte[] bytes, int from, int to, long seed) {
        return fraction >= 1 || (hash(bytes, from, to, seed) >>> 11) * UNIT < fraction;
    }
}
