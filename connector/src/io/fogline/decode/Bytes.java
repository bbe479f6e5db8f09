package io.fogline.decode;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.apache.spark.unsafe.Platform;

/** Small loops over byte arrays that every decoder and reader shares. */
public final class Bytes {
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGHS = 0x8080808080808080L;

    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private Bytes() {}

    /** The first index of {@code value} in {@code bytes[from, to)}, or -1; eight bytes a step. */
    public static int indexOf(byte[] bytes, byte value, int from, int to) {
        long pattern = (value & 0xffL) * ONES;
        int i = from;
        for (; i + 8 <= to; i += 8) {
            long word = (long) WORD.get(bytes, i) ^ pattern;
            long found = (word - ONES) & ~word & HIGHS;
            if (found != 0) {
                return i + (Long.numberOfTrailingZeros(found) >>> 3);
            }
        }
        for (; i < to; i++) {
            if (bytes[i] == value) {
                return i;
            }
        }
        return -1;
    }

    public static boolean equal(byte[] left, int offset, byte[] right, int length) {
        return Arrays.equals(left, offset, offset + length, right, 0, length);
    }

    /** Whether the range is well-formed UTF-8 (no overlong forms, surrogates or values too large). */
    public static boolean isUtf8(byte[] bytes, int from, int to) {
        int i = from;
        while (i < to) {
            if (i + 8 <= to && (Platform.getLong(bytes, Platform.BYTE_ARRAY_OFFSET + i) & HIGHS) == 0) {
                i += 8;
            } else if (bytes[i] >= 0) {
                i++;
            } else {
                int length = sequence(bytes, i, to);
                if (length == 0) {
                    return false;
                }
                i += length;
            }
        }
        return true;
    }

    /** The length of the multi-byte UTF-8 sequence that starts at {@code at}, 0 when it is not one. */
    static int sequence(byte[] bytes, int at, int to) {
        int first = bytes[at] & 0xff;
        int length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
        if (first < 0xc2 || first > 0xf4 || at + length > to) {
            return 0;
        }
        int second = bytes[at + 1] & 0xff;
        int lowest = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
        int highest = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
        if (second < lowest || second > highest) {
            return 0;
        }
        for (int i = 2; i < length; i++) {
            if ((bytes[at + i] & 0xc0) != 0x80) {
                return 0;
            }
        }
        return length;
    }

    /** Whether the range holds nothing but blanks, tabs and carriage returns. */
    public static boolean isBlank(byte[] bytes, int from, int to) {
        for (int i = from; i < to; i++) {
            if (bytes[i] != ' ' && bytes[i] != '\t' && bytes[i] != '\r') {
                return false;
            }
        }
        return true;
    }
}
