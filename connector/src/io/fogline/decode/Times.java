package io.fogline.decode;

/**
 * Event times in microseconds since the epoch. A number from 1e14 on is microseconds, from 1e11 on
 * milliseconds, below seconds; a text is such a number or ISO 8601 with a blank or T, in UTC where it
 * names no zone. Times outside the years 1 to 9998 are no times.
 */
public final class Times {
    public static final long NONE = Record.NO_TIME;
    private static final long FIRST = -62_135_596_800_000_000L;
    private static final long LAST = 253_370_764_800_000_000L;
    private static final int[] DAYS = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    private static final int[] FRACTION = {1_000_000, 100_000, 10_000, 1_000, 100, 10, 1};

    private Times() {}

    /** The time in a slot of a record, or {@link #NONE}. */
    public static long of(Record record, int slot) {
        switch (record.kind(slot)) {
            case Record.NUMBER:
            case Record.TEXT:
                return parse(record.source(slot), record.offset(slot), record.length(slot));
            case Record.LONG:
                return ofLong(record.longValue(slot));
            case Record.DOUBLE:
                return ofDouble(record.doubleValue(slot));
            default:
                return NONE;
        }
    }

    public static long parse(byte[] bytes, int offset, int length) {
        long digits = Numbers.digits(bytes, offset, length);
        return digits >= 0 ? ofLong(digits) : parseAny(bytes, offset, length);
    }

    private static long parseAny(byte[] bytes, int offset, int length) {
        int from = offset;
        int to = offset + length;
        while (from < to && bytes[from] == ' ') {
            from++;
        }
        while (to > from && bytes[to - 1] == ' ') {
            to--;
        }
        if (Numbers.isLong(bytes, from, to - from)) {
            return ofLong(Numbers.toLong(bytes, from, to - from));
        }
        if (to - from >= 10 && bytes[from + 4] == '-' && bytes[from + 7] == '-') {
            return iso(bytes, from, to);
        }
        return ofDouble(Numbers.parse(bytes, from, to - from));
    }

    public static long ofLong(long value) {
        if (value >= 100_000_000_000_000L) {
            return inRange(value);
        }
        if (value >= 100_000_000_000L) {
            return value * 1_000;
        }
        return value < FIRST / 1_000_000 ? NONE : value * 1_000_000;
    }

    public static long ofDouble(double value) {
        if (!(Math.abs(value) < 1e18)) {
            return NONE;
        }
        double scale = value >= 1e14 ? 1 : value >= 1e11 ? 1e3 : 1e6;
        return Math.abs(value) * scale > 1e18 ? NONE : inRange(Math.round(value * scale));
    }

    /** The time itself, or {@link #NONE} where it is not of the years 1 to 9998. */
    static long inRange(long micros) {
        return micros < FIRST || micros >= LAST ? NONE : micros;
    }

    private static long iso(byte[] b, int from, int to) {
        int year = digits4(b, from);
        int month = digits2(b, from + 5);
        int day = digits2(b, from + 8);
        if (year < 1 || month < 1 || month > 12 || day < 1 || day > DAYS[month - 1] || isNoLeapDay(year, month, day)) {
            return NONE;
        }
        long date = epochDay(year, month, day) * 86_400_000_000L;
        if (to == from + 10) {
            return inRange(date);
        }
        int at = from + 10;
        if (to < at + 6 || b[at] != 'T' && b[at] != 't' && b[at] != ' ' || b[at + 3] != ':') {
            return NONE;
        }
        int hour = digits2(b, at + 1);
        int minute = digits2(b, at + 4);
        if (hour < 0 || hour > 23 || minute < 0 || minute > 59) {
            return NONE;
        }
        long micros = date + (hour * 60L + minute) * 60_000_000L;
        return withSeconds(b, at + 6, to, micros);
    }

    private static long withSeconds(byte[] b, int from, int to, long minutes) {
        int at = from;
        long micros = minutes;
        if (at < to && b[at] == ':') {
            int second = at + 3 <= to ? digits2(b, at + 1) : -1;
            if (second < 0 || second > 59) {
                return NONE;
            }
            micros += second * 1_000_000L;
            at += 3;
            if (at < to && (b[at] == '.' || b[at] == ',')) {
                int first = ++at;
                for (; at < to && b[at] >= '0' && b[at] <= '9'; at++) {
                    micros += at - first < 6 ? (long) (b[at] - '0') * FRACTION[at - first + 1] : 0;
                }
                if (at == first) {
                    return NONE;
                }
            }
        }
        return zone(b, at, to, micros);
    }

    private static long zone(byte[] b, int from, int to, long local) {
        int at = from;
        while (at < to && b[at] == ' ') {
            at++;
        }
        if (at == to || at + 1 == to && (b[at] == 'Z' || b[at] == 'z')) {
            return inRange(local);
        }
        int left = to - at;
        if (b[at] != '+' && b[at] != '-' || left != 3 && left != 5 && !(left == 6 && b[at + 3] == ':')) {
            return NONE;
        }
        int hours = digits2(b, at + 1);
        int minutes = left == 3 ? 0 : digits2(b, to - 2);
        if (hours < 0 || hours > 18 || minutes < 0 || minutes > 59) {
            return NONE;
        }
        long offset = (hours * 60L + minutes) * 60_000_000L;
        return inRange(b[at] == '+' ? local - offset : local + offset);
    }

    private static boolean isNoLeapDay(int year, int month, int day) {
        return month == 2 && day == 29 && (year % 4 != 0 || year % 100 == 0 && year % 400 != 0);
    }

    /** Days since the epoch in the proleptic Gregorian calendar. */
    private static long epochDay(int year, int month, int day) {
        int y = month <= 2 ? year - 1 : year;
        int era = Math.floorDiv(y, 400);
        int yearOfEra = y - era * 400;
        int dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
        int dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear;
        return era * 146_097L + dayOfEra - 719_468;
    }

    private static int digits4(byte[] b, int at) {
        int high = digits2(b, at);
        int low = digits2(b, at + 2);
        return high < 0 || low < 0 ? -1 : high * 100 + low;
    }

    private static int digits2(byte[] b, int at) {
        int tens = b[at] - '0';
        int ones = b[at + 1] - '0';
        return (tens | ones) < 0 || tens > 9 || ones > 9 ? -1 : tens * 10 + ones;
    }
}
