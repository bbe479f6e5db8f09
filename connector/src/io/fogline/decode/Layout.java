package io.fogline.decode;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * Where the values of a record go: one slot for every field that some column, the time or the metric
 * rule needs. A name with dots has two slots, one for a field that literally has the name and one
 * for the path into nested objects; the literal one wins.
 */
public final class Layout implements Serializable {
    private final FieldTree root = new FieldTree();
    private final int[] literal;
    private final int[] path;
    private final byte[][] metrics;
    private final int timeLiteral;
    private final int timePath;
    private final int metricSlot;
    private final int valueSlot;
    private int slots;

    /** {@code time}, {@code metricField} and {@code valueField} may be null. */
    public Layout(List<Field> fields, String time, String metricField, String valueField) {
        literal = new int[fields.size()];
        path = new int[fields.size()];
        metrics = new byte[fields.size()][];
        boolean named = metricField != null && valueField != null;
        for (int i = 0; i < fields.size(); i++) {
            Field field = fields.get(i);
            boolean decoded = field.type().isDecoded();
            literal[i] = decoded ? literalSlot(field.from()) : -1;
            path[i] = decoded ? pathSlot(field.from()) : -1;
            metrics[i] = decoded && named && field.metric() ? field.from().getBytes(StandardCharsets.UTF_8) : null;
        }
        timeLiteral = time == null ? -1 : literalSlot(time);
        timePath = time == null ? -1 : pathSlot(time);
        metricSlot = named ? literalSlot(metricField) : -1;
        valueSlot = named ? literalSlot(valueField) : -1;
    }

    /** The names at the top level of a record. */
    public FieldTree root() {
        return root;
    }

    public int slots() {
        return slots;
    }

    public boolean hasTimeField() {
        return timeLiteral >= 0;
    }

    /** The slot that holds the declared time in this record, or -1. */
    public int timeSlot(Record record) {
        return pick(record, timeLiteral, timePath);
    }

    /** The slot that holds the value of a column in this record, or -1. */
    public int slot(Record record, int column) {
        int slot = pick(record, literal[column], path[column]);
        if (slot >= 0 || metrics[column] == null) {
            return slot;
        }
        return isMetric(record, metrics[column]) && record.has(valueSlot) ? valueSlot : -1;
    }

    private boolean isMetric(Record record, byte[] metric) {
        return record.kind(metricSlot) == Record.TEXT
                && record.length(metricSlot) == metric.length
                && Bytes.equal(record.source(metricSlot), record.offset(metricSlot), metric, metric.length);
    }

    private static int pick(Record record, int literal, int path) {
        if (literal >= 0 && record.has(literal)) {
            return literal;
        }
        return path >= 0 && record.has(path) ? path : -1;
    }

    private int literalSlot(String name) {
        int entry = root.entry(name);
        if (root.slot(entry) < 0) {
            root.setSlot(entry, slots++);
        }
        return root.slot(entry);
    }

    private int pathSlot(String name) {
        String[] steps = name.split("\\.", -1);
        if (steps.length == 1) {
            return -1;
        }
        FieldTree level = root;
        for (int i = 0; i < steps.length - 1; i++) {
            level = level.childOf(level.entry(steps[i]));
        }
        int entry = level.entry(steps[steps.length - 1]);
        if (level.slot(entry) < 0) {
            level.setSlot(entry, slots++);
        }
        return level.slot(entry);
    }
}
