package io.fogline.encode;

import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * Times as {@code 2026-11-17T14:26:00.250Z}, as Spark's {@code date_format} writes them, without the
 * objects that Java's own formatter makes for each.
 */
public final class IsoTime {
    private static final DateTimeFormatter ANY_YEAR =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);
    private static final byte[] FORM = "0000-00-00T00:00:00.000Z".getBytes(StandardCharsets.US_ASCII);
    private static final long DAY = 86_400_000L;
    /** Of the years 0000 to 9999, in milliseconds since 1970. */
    private static final long FIRST = -62_167_219_200_000L;
    private static final long LAST = 253_402_300_799_999L;

    private IsoTime() {}

    /** A column of milliseconds since 1970 as text; null stays null. */
    public static Column column(Column millis) {
        return Calls.of(IsoTime.class, "text", DataTypes.StringType, true, millis);
    }

    /** Called by the code that Spark generates. */
    public static UTF8String text(long millis) {
        if (millis < FIRST || millis > LAST) {
            return UTF8String.fromString(ANY_YEAR.format(Instant.ofEpochMilli(millis)));
        }
        byte[] text = FORM.clone();
        putDate(text, Math.floorDiv(millis, DAY));
        int rest = (int) Math.floorMod(millis, DAY);
        put(text, 20, 3, rest % 1000);
        put(text, 17, 2, rest / 1000 % 60);
        put(text, 14, 2, rest / 60_000 % 60);
        put(text, 11, 2, rest / 3_600_000);
        return UTF8String.fromBytes(text);
    }

    /** By the calendar that begins its years on 1 March, so that the leap day is the last of a year. */
    private static void putDate(byte[] text, long day) {
        long days = day + 719_468; // since 0000-03-01
        long era = Math.floorDiv(days, 146_097); // of 400 years
        int ofEra = (int) (days - era * 146_097);
        int year = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365;
        int ofYear = ofEra - (365 * year + year / 4 - year / 100);
        int month = (5 * ofYear + 2) / 153;
        put(text, 8, 2, ofYear - (153 * month + 2) / 5 + 1);
        put(text, 5, 2, month < 10 ? month + 3 : month - 9);
        put(text, 0, 4, (int) (era * 400) + year + (month < 10 ? 0 : 1));
    }

    private static void put(byte[] text, int at, int digits, int value) {
        for (int i = at + digits - 1; i >= at; i--, value /= 10) {
            text[i] = (byte) ('0' + value % 10);
        }
    }
}
