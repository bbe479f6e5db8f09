package io.fogline.source;

import org.apache.spark.unsafe.Platform;

/** Bytes of a text or key, mostly a few: hashed and compared eight at a time, the last eight again. */
final class ShortText {
    private static final long MIX = 0x9E3779B97F4A7C15L;

    private ShortText() {}

    static int hash(byte[] bytes, int offset, int length) {
        long hash = length;
        int last = length - 8;
        for (int i = 0; i < last; i += 8) {
            hash = mixed(hash, eight(bytes, offset + i));
        }
        return (int) mixed(hash, last >= 0 ? eight(bytes, offset + last) : few(bytes, offset, length));
    }

    /** Whether all of {@code other} lies at the offset. */
    static boolean equal(byte[] bytes, int offset, byte[] other) {
        int last = other.length - 8;
        if (last < 0) {
            return few(bytes, offset, other.length) == few(other, 0, other.length);
        }
        for (int i = 0; i < last; i += 8) {
            if (eight(bytes, offset + i) != eight(other, i)) {
                return false;
            }
        }
        return eight(bytes, offset + last) == eight(other, last);
    }

    private static long mixed(long hash, long bits) {
        long mixed = (hash ^ bits) * MIX;
        return mixed ^ mixed >>> 32;
    }

    private static long eight(byte[] bytes, int at) {
        return Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + at);
    }

    /** Fewer than eight; different for different bytes of one length. */
    private static long few(byte[] bytes, int at, int length) {
        if (length >= 4) {
            long first = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + at);
            long second = Platform.getInt(bytes, Platform.BYTE_ARRAY_OFFSET + at + length - 4);
            return first << 32 | second & 0xffffffffL;
        }
        long bits = 0;
        for (int i = 0; i < length; i++) {
            bits = bits << 8 | bytes[at + i] & 0xff;
        }
        return bits;
    }
}
