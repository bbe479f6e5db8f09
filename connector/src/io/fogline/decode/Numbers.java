package io.fogline.decode;

import java.nio.charset.StandardCharsets;

/**
 * Numbers from text. Most are digits with one dot, and those are exact with one division: the digits
 * make an integer below 2^53 and the power of ten is at most 22. All others go to the JDK.
 */
public final class Numbers {
    private static final double[] POWERS = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22
    };
    private static final long EXACT = 1L << 53;

    private Numbers() {}

    /**
     * The number that the text is, blanks around it allowed; NaN when it is none. Decimal notation
     * only: no hexadecimal, no names, no suffixes. A number too large for a double is infinite.
     */
    public static double parse(byte[] bytes, int offset, int length) {
        int i = offset;
        int to = offset + length;
        if (i < to && bytes[i] == '-') {
            i++;
        }
        long digits = 0;
        int first = i;
        int dot = -1;
        for (; i < to; i++) {
            int c = bytes[i];
            if (c >= '0' && c <= '9') {
                digits = digits * 10 + (c - '0');
            } else if (c == '.' && dot < 0) {
                dot = i;
            } else {
                return parseSlowly(bytes, offset, length);
            }
        }
        int count = i - first - (dot < 0 ? 0 : 1);
        if (count == 0 || count > 18 || digits >= EXACT) {
            return parseSlowly(bytes, offset, length);
        }
        double value = dot < 0 ? digits : digits / POWERS[to - dot - 1];
        return bytes[offset] == '-' ? -value : value;
    }

    private static double parseSlowly(byte[] bytes, int offset, int length) {
        int digits = 0;
        for (int i = offset; i < offset + length; i++) {
            int c = bytes[i];
            if (c >= '0' && c <= '9') {
                digits++;
            } else if (c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' && c != ' ') {
                return Double.NaN;
            }
        }
        if (digits == 0) {
            return Double.NaN;
        }
        try {
            return Double.parseDouble(new String(bytes, offset, length, StandardCharsets.ISO_8859_1));
        } catch (NumberFormatException e) {
            return Double.NaN;
        }
    }

    /** The value of a text of 1 to 18 digits and nothing else, -1 for any other. */
    static long digits(byte[] bytes, int offset, int length) {
        if (length == 0 || length > 18) {
            return -1;
        }
        if (length >= 8 && length <= 16) {
            return Words.digits(bytes, offset, length);
        }
        long value = 0;
        int odd = 0;
        for (int i = offset; i < offset + length; i++) {
            int digit = bytes[i] - '0';
            odd |= digit | 9 - digit;
            value = value * 10 + digit;
        }
        return odd < 0 ? -1 : value;
    }

    /** Whether the text is a plain integer that fits a long: sign and digits, nothing else. */
    public static boolean isLong(byte[] bytes, int offset, int length) {
        int i = length > 0 && (bytes[offset] == '-' || bytes[offset] == '+') ? 1 : 0;
        int digits = length - i;
        for (; i < length; i++) {
            if (bytes[offset + i] < '0' || bytes[offset + i] > '9') {
                return false;
            }
        }
        return digits > 0 && (digits <= 18 || fits(bytes, offset, length));
    }

    private static boolean fits(byte[] bytes, int offset, int length) {
        if (length > 64) {
            return false;
        }
        try {
            Long.parseLong(new String(bytes, offset, length, StandardCharsets.ISO_8859_1));
            return true;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /** The value of a text for which {@link #isLong} holds. */
    public static long toLong(byte[] bytes, int offset, int length) {
        boolean negative = bytes[offset] == '-';
        long value = 0;
        for (int i = negative || bytes[offset] == '+' ? 1 : 0; i < length; i++) {
            value = value * 10 - (bytes[offset + i] - '0');
        }
        return negative ? value : -value;
    }

    /** Whether a double is an integer that a long holds exactly. */
    public static boolean isLong(double value) {
        return value >= -0x1p63 && value < 0x1p63 && value == Math.rint(value);
    }
}
