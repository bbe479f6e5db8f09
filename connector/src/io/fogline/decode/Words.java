package io.fogline.decode;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Looks at eight bytes a step. Where it would have to read behind the array it gives up (-1). */
final class Words {
    private static final VarHandle WORD = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long ONES = 0x0101010101010101L;
    private static final long HIGHS = 0x8080808080808080L;
    private static final long QUOTES = '"' * ONES;
    private static final long ESCAPES = '\\' * ONES;
    private static final long BLANKS = ' ' * ONES;
    private static final long ZEROS = '0' * ONES;
    /** Lifts everything above nine into the high bit. */
    private static final long ABOVE_NINE = 0x76 * ONES;

    private static final long[] POWERS = {1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000};

    private Words() {}

    static boolean equal(byte[] left, int leftAt, byte[] right, int rightAt, int length) {
        if (length < 8) {
            for (int i = 0; i < length; i++) {
                if (left[leftAt + i] != right[rightAt + i]) {
                    return false;
                }
            }
            return true;
        }
        int last = length - 8;
        for (int i = 0; i < last; i += 8) {
            if (word(left, leftAt + i) != word(right, rightAt + i)) {
                return false;
            }
        }
        return word(left, leftAt + last) == word(right, rightAt + last);
    }

    /** The closing quote of a JSON string of plain ASCII whose content begins at {@code from}, or -1. */
    static int plainEnd(byte[] bytes, int from) {
        for (int i = from; i + 8 <= bytes.length; i += 8) {
            long word = word(bytes, i);
            long quote = word ^ QUOTES;
            long escape = word ^ ESCAPES;
            long found = ((quote - ONES) & ~quote | (escape - ONES) & ~escape | word - BLANKS | word) & HIGHS;
            if (found != 0) {
                int end = i + (Long.numberOfTrailingZeros(found) >>> 3);
                return bytes[end] == '"' ? end : -1;
            }
        }
        return -1;
    }

    /** The end of a JSON number without exponent that begins at {@code from}, or -1. */
    static int numberEnd(byte[] bytes, int from) {
        int first = bytes[from] == '-' ? from + 1 : from;
        if (first + 8 > bytes.length) {
            return -1;
        }
        long other = notDigits(word(bytes, first));
        int whole = Long.numberOfTrailingZeros(other) >>> 3;
        if (other == 0) {
            return longNumberEnd(bytes, first);
        }
        if (whole == 0 || bytes[first] == '0' && whole > 1) {
            return -1;
        }
        if (bytes[first + whole] != '.') {
            return first + whole;
        }
        long behind = other & other - 1;
        if (behind == 0) {
            return longNumberEnd(bytes, first);
        }
        int end = Long.numberOfTrailingZeros(behind) >>> 3;
        return end > whole + 1 ? first + end : -1;
    }

    private static int longNumberEnd(byte[] bytes, int first) {
        int at = digitsEnd(bytes, first);
        if (at <= first || bytes[first] == '0' && at > first + 1) {
            return -1;
        }
        if (bytes[at] != '.') {
            return at;
        }
        int end = digitsEnd(bytes, at + 1);
        return end > at + 1 ? end : -1;
    }

    /** The high bit of every byte that is not a digit; exact up to the first byte beyond ASCII. */
    private static long notDigits(long word) {
        long digits = word ^ ZEROS;
        return (digits + ABOVE_NINE | digits) & HIGHS;
    }

    /** The value of 8 to 16 digits and nothing else, -1 for any other text. */
    static long digits(byte[] bytes, int from, int length) {
        long high = word(bytes, from) ^ ZEROS;
        long low = word(bytes, from + length - 8) ^ ZEROS;
        if (((high + ABOVE_NINE | high | low + ABOVE_NINE | low) & HIGHS) != 0) {
            return -1;
        }
        int twice = 16 - length;
        if (twice == 8) {
            return eight(high);
        }
        return eight(high) * POWERS[8 - twice] + eight(low >>> 8 * twice << 8 * twice);
    }

    /** Eight digits, the first in the lowest byte: pairs, then fours, then all. */
    private static long eight(long digits) {
        long pairs = digits * 10 + (digits >>> 8) & 0x00ff00ff00ff00ffL;
        long fours = pairs * 100 + (pairs >>> 16) & 0x0000ffff0000ffffL;
        return (fours * 10_000 + (fours >>> 32)) & 0xffffffffL;
    }

    private static int digitsEnd(byte[] bytes, int from) {
        for (int i = from; i + 8 <= bytes.length; i += 8) {
            long other = notDigits(word(bytes, i));
            if (other != 0) {
                return i + (Long.numberOfTrailingZeros(other) >>> 3);
            }
        }
        return -1;
    }

    static long word(byte[] bytes, int at) {
        return (long) WORD.get(bytes, at);
    }
}
