package io.fogline.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.fogline.decode.Decoders;
import io.fogline.decode.Field;
import io.fogline.decode.Layout;
import java.io.Serializable;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The options of a read, checked once: an object of this class cannot hold a wrong combination.
 * Absent options are null (texts), or their defaults (numbers).
 *
 * @param fields the columns, the event time last
 * @param filter the condition as JSON, or null
 * @param controlDrops the live fraction drops messages; else it is only told
 * @param lateness in milliseconds; -1 when nothing is late
 * @param ahead how far a time may lie ahead of its message's arrival, in milliseconds; -1: any time is taken
 * @param speed times real time; 0 as fast as possible
 * @param timeShift microseconds to add to every declared time
 * @param counts the name under which a reader in real time tells what it has found, or null
 * @param firstBatch how long the first batch in real time may last, in milliseconds; -1: as long as Spark says
 * @param start of a log: the position at which a stream without a checkpoint begins
 * @param clock how event time moves on without records; null: it does not
 */
record SourceOptions(
        String path,
        String format,
        List<Field> fields,
        Layout layout,
        String entity,
        List<String> header,
        String filter,
        double sample,
        long sampleSeed,
        String control,
        boolean controlDrops,
        String stream,
        long lateness,
        long ahead,
        String rejects,
        long maxBytesPerTrigger,
        long splitBytes,
        boolean tail,
        boolean flush,
        double speed,
        String panes,
        boolean log,
        long timeShift,
        String counts,
        long firstBatch,
        long start,
        ClockOptions clock)
        implements Serializable {

    private static final ObjectMapper JSON = new ObjectMapper().enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS);
    private static final long MEBIBYTE = 1L << 20;

    static SourceOptions of(CaseInsensitiveStringMap options) {
        String metricField = options.get("metricField");
        String valueField = options.get("valueField");
        if ((metricField == null) != (valueField == null)) {
            throw new IllegalArgumentException("options metricField and valueField go together");
        }
        List<Field> fields = FieldsParser.parse(json("fields", required(options, "fields")));
        Layout layout = new Layout(fields, options.get("time"), metricField, valueField);
        String filter = options.get("filter");
        if (filter != null) {
            new FilterParser(fields).parse(json("filter", filter));
        }
        return new SourceOptions(
                path(options),
                format(options),
                fields,
                layout,
                options.get("entity"),
                header(options),
                filter,
                fraction(options),
                number(options, "sampleSeed", 0, Long.MIN_VALUE),
                options.get("control"),
                controlDrops(options),
                options.getOrDefault("stream", "stream"),
                number(options, "lateness", -1, 0),
                number(options, "ahead", -1, 0),
                options.get("rejects"),
                number(options, "maxBytesPerTrigger", 64 * MEBIBYTE, 1),
                number(options, "splitBytes", 8 * MEBIBYTE, 1),
                flag(options, "tail"),
                flag(options, "flush"),
                speed(options),
                options.get("panes"),
                flag(options, "log"),
                number(options, "timeShift", 0, Long.MIN_VALUE),
                options.get("counts"),
                number(options, "firstBatch", -1, 1),
                number(options, "start", 0, 0),
                clock(options)).checked();
    }

    private SourceOptions checked() {
        if (log && format.equals("csv") && header == null) {
            throw new IllegalArgumentException("option header: csv messages in a log need the names of their columns");
        }
        if (ahead >= 0 && !log) {
            throw new IllegalArgumentException("option ahead: only messages in a log have a time of arrival");
        }
        if (clock != null && (!log || lateness < 0)) {
            throw new IllegalArgumentException("option clock: only of a log that is read with a lateness");
        }
        return this;
    }

    private static ClockOptions clock(CaseInsensitiveStringMap options) {
        String group = options.get("clock");
        return group == null ? null : new ClockOptions(
                group,
                number(options, "idle", -1, -1),
                number(options, "horizon", 0, 0),
                number(options, "clockStep", 1000, 1));
    }

    /** A new filter; null when every row is wanted. */
    Filter newFilter() {
        return filter == null ? null : new FilterParser(fields).parse(json("filter", filter));
    }

    /** The same read, leaving nothing behind. */
    SourceOptions withoutRejects() {
        return new SourceOptions(
                path, format, fields, layout, entity, header, filter, sample, sampleSeed, control, controlDrops, stream,
                lateness, ahead, null, maxBytesPerTrigger, splitBytes, tail, flush, speed, panes, log, timeShift,
                counts, firstBatch, start, clock);
    }

    /** Whether bad messages are rows of their own. */
    boolean wantsErrors() {
        return fields.stream().anyMatch(field -> field.type() == Field.Type.ERROR);
    }

    /** The share of messages to keep at this moment. */
    double currentFraction() {
        return control == null ? sample : sample * SampleControl.get(control);
    }

    private static String path(CaseInsensitiveStringMap options) {
        String path = required(options, "path");
        return path.startsWith("file:") ? URI.create(path).getPath() : path;
    }

    private static String format(CaseInsensitiveStringMap options) {
        String format = required(options, "format").toLowerCase(Locale.ROOT);
        if (!Decoders.FORMATS.contains(format)) {
            throw new IllegalArgumentException("option format: " + format + " is none of " + Decoders.FORMATS);
        }
        return format;
    }

    private static List<String> header(CaseInsensitiveStringMap options) {
        if (options.get("header") == null) {
            return null;
        }
        JsonNode names = json("header", options.get("header"));
        List<String> header = new ArrayList<>();
        for (JsonNode name : names) {
            header.add(name.asText());
        }
        if (!names.isArray() || header.isEmpty()) {
            throw new IllegalArgumentException("option header: expected a JSON list of column names");
        }
        return header;
    }

    private static boolean controlDrops(CaseInsensitiveStringMap options) {
        String mode = options.getOrDefault("controlMode", "drop").toLowerCase(Locale.ROOT);
        if (!mode.equals("drop") && !mode.equals("report")) {
            throw new IllegalArgumentException("option controlMode: " + mode + " is neither drop nor report");
        }
        return mode.equals("drop");
    }

    private static double speed(CaseInsensitiveStringMap options) {
        String text = options.getOrDefault("speed", "0");
        try {
            double speed = Double.parseDouble(text);
            if (speed >= 0 && speed <= 1e9) {
                return speed;
            }
        } catch (NumberFormatException e) {
            // Falls through to the same message.
        }
        throw new IllegalArgumentException("option speed: " + text + " is not a number from 0 to 1e9");
    }

    private static double fraction(CaseInsensitiveStringMap options) {
        String text = options.getOrDefault("sample", "1");
        try {
            double fraction = Double.parseDouble(text);
            if (fraction >= 0 && fraction <= 1) {
                return fraction;
            }
        } catch (NumberFormatException e) {
            // Falls through to the same message.
        }
        throw new IllegalArgumentException("option sample: " + text + " is not a number from 0 to 1");
    }

    private static long number(CaseInsensitiveStringMap options, String name, long absent, long least) {
        String text = options.get(name);
        if (text == null) {
            return absent;
        }
        try {
            long value = Long.parseLong(text.trim());
            if (value >= least) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Falls through to the same message.
        }
        String range = least == Long.MIN_VALUE ? "" : " from " + least + " on";
        throw new IllegalArgumentException("option " + name + ": " + text + " is not an integer" + range);
    }

    private static boolean flag(CaseInsensitiveStringMap options, String name) {
        String text = options.getOrDefault(name, "false").toLowerCase(Locale.ROOT);
        if (!text.equals("true") && !text.equals("false")) {
            throw new IllegalArgumentException("option " + name + ": " + text + " is neither true nor false");
        }
        return text.equals("true");
    }

    private static String required(CaseInsensitiveStringMap options, String name) {
        String value = options.get(name);
        if (value == null || value.isBlank()) {
            throw new IllegalArgumentException("option " + name + " is missing");
        }
        return value;
    }

    private static JsonNode json(String name, String text) {
        try {
            return JSON.readTree(text);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("option " + name + " is not JSON: " + e.getOriginalMessage(), e);
        }
    }
}
