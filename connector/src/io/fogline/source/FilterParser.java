package io.fogline.source;

import com.fasterxml.jackson.databind.JsonNode;
import io.fogline.decode.Bytes;
import io.fogline.decode.Field;
import io.fogline.decode.Times;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Makes a {@link Filter} from its JSON form. Every mistake in it (unknown operator or column, a
 * value of another type than the column's) is an IllegalArgumentException before anything is read.
 */
final class FilterParser {
    private static final String TIME = "_time";
    private static final int MAX_DEPTH = 250;

    private final List<Field> fields;

    FilterParser(List<Field> fields) {
        this.fields = fields;
    }

    Filter parse(JsonNode node) {
        return parse(node, 0);
    }

    private Filter parse(JsonNode node, int depth) {
        if (!node.isObject() || !node.path("op").isTextual() || depth > MAX_DEPTH) {
            throw wrong("expected an object with \"op\"");
        }
        String op = node.get("op").textValue();
        switch (op) {
            case "and":
                return Filter.and(parts(node, depth));
            case "or":
                return Filter.or(parts(node, depth));
            case "not":
                return Filter.not(parse(node.path("arg"), depth + 1));
            case "in":
                return in(node);
            case "prefix":
                return prefix(node);
            default:
                return compare(op, column(node), required(node, "value"));
        }
    }

    private List<Filter> parts(JsonNode node, int depth) {
        if (!node.path("args").isArray()) {
            throw wrong("and, or need a list \"args\"");
        }
        List<Filter> parts = new ArrayList<>();
        for (JsonNode part : node.get("args")) {
            parts.add(parse(part, depth + 1));
        }
        return parts;
    }

    private Filter in(JsonNode node) {
        int column = column(node);
        if (!node.path("values").isArray()) {
            throw wrong("in needs a list \"values\"");
        }
        List<Filter> parts = new ArrayList<>();
        for (JsonNode value : node.get("values")) {
            parts.add(compare("==", column, value));
        }
        return parts.isEmpty() ? columns -> Filter.FALSE : Filter.or(parts);
    }

    private Filter prefix(JsonNode node) {
        int column = column(node);
        JsonNode value = required(node, "value");
        if (type(column) != Field.Type.STRING || !value.isTextual()) {
            throw wrong("prefix needs a string column and a string");
        }
        byte[] prefix = value.textValue().getBytes(StandardCharsets.UTF_8);
        return columns -> columns.isNull(column)
                ? Filter.NULL
                : Filter.of(columns.lengthAt(column) >= prefix.length
                        && Bytes.equal(columns.textAt(column), columns.offsetAt(column), prefix, prefix.length));
    }

    private Filter compare(String op, int column, JsonNode value) {
        if (value.isNull()) {
            Filter.compare(op, column, columns -> 0);
            return columns -> Filter.NULL;
        }
        return Filter.compare(op, column, comparison(op, column, value));
    }

    private Filter.Comparison comparison(String op, int column, JsonNode value) {
        switch (type(column)) {
            case TIME:
                long time = time(value);
                return columns -> Long.compare(columns.time(), time);
            case DOUBLE:
                double number = number(column, value);
                return columns -> compare(columns.doubleAt(column), number);
            case LONG:
                return comparisonOfLong(column, value);
            case BOOLEAN:
                if (!value.isBoolean() || !op.equals("==") && !op.equals("!=")) {
                    throw wrong("column " + name(column) + " is boolean: compare it with == or != to true or false");
                }
                boolean wanted = value.booleanValue();
                return columns -> Boolean.compare(columns.booleanAt(column), wanted);
            default:
                return comparisonOfText(column, value);
        }
    }

    private Filter.Comparison comparisonOfLong(int column, JsonNode value) {
        double number = number(column, value);
        if (value.isIntegralNumber() && value.canConvertToLong()) {
            long exact = value.longValue();
            return columns -> Long.compare(columns.longAt(column), exact);
        }
        return columns -> compare(columns.longAt(column), number);
    }

    private Filter.Comparison comparisonOfText(int column, JsonNode value) {
        if (!value.isTextual()) {
            throw wrong("column " + name(column) + " is a string, " + value + " is not");
        }
        byte[] text = value.textValue().getBytes(StandardCharsets.UTF_8);
        return columns -> {
            int from = columns.offsetAt(column);
            int to = from + columns.lengthAt(column);
            return Arrays.compareUnsigned(columns.textAt(column), from, to, text, 0, text.length);
        };
    }

    /** As Double.compare, but zero is zero whatever its sign; neither side is ever NaN. */
    private static int compare(double left, double right) {
        return left < right ? -1 : left > right ? 1 : 0;
    }

    private double number(int column, JsonNode value) {
        if (!value.isNumber()) {
            throw wrong("column " + name(column) + " is a number, " + value + " is not");
        }
        return value.doubleValue();
    }

    private static long time(JsonNode value) {
        byte[] text = value.asText().getBytes(StandardCharsets.UTF_8);
        long time = Times.parse(text, 0, text.length);
        if (time == Times.NONE) {
            throw wrong(value + " is not a time");
        }
        return time;
    }

    private int column(JsonNode node) {
        String name = required(node, "column").asText();
        if (name.equals(TIME)) {
            return -1;
        }
        for (int i = 0; i < fields.size(); i++) {
            if (fields.get(i).name().equals(name) && fields.get(i).type().isDecoded()) {
                return i;
            }
        }
        throw wrong("column " + name + " is not in option fields");
    }

    private Field.Type type(int column) {
        return column < 0 ? Field.Type.TIME : fields.get(column).type();
    }

    private String name(int column) {
        return column < 0 ? TIME : fields.get(column).name();
    }

    private static JsonNode required(JsonNode node, String name) {
        JsonNode value = node.get(name);
        if (value == null) {
            throw wrong("\"" + name + "\" is missing in " + node);
        }
        return value;
    }

    private static IllegalArgumentException wrong(String what) {
        return new IllegalArgumentException("option filter: " + what);
    }
}
