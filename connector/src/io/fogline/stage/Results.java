package io.fogline.stage;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Collects the evaluations of one node. An evaluation is opened, its columns set, and then kept or
 * dropped; {@link #take} gives them in rows and forgets them. Rows are short, because whoever takes
 * the evaluations of a row apart again copies the whole row for each.
 */
final class Results {
    private static final int ROW_VALUES = 64;
    private static final int LEAST_ROW = 4;

    private final int node;
    private final int width;
    private final boolean hasTexts;
    private final int most;
    private final List<ResultRow> full = new ArrayList<>();
    private long[] starts = new long[4];
    private long[] ends = new long[4];
    private long[] counts;
    private double[] values;
    private String[] texts;
    private int size;

    Results(int node, int width, boolean hasTexts) {
        this.node = node;
        this.width = width;
        this.hasTexts = hasTexts;
        this.most = Math.max(LEAST_ROW, ROW_VALUES / width);
        counts = new long[4 * width];
        values = new double[4 * width];
        texts = new String[hasTexts ? 4 * width : 0];
    }

    /** Opens an evaluation over [start, end), with nothing in it yet. */
    void open(long start, long end) {
        if (size == starts.length) {
            grow();
        }
        starts[size] = start;
        ends[size] = end;
        Arrays.fill(counts, size * width, (size + 1) * width, 0);
        Arrays.fill(values, size * width, (size + 1) * width, Double.NaN);
        if (hasTexts) {
            Arrays.fill(texts, size * width, (size + 1) * width, null);
        }
    }

    void startAt(long start) {
        starts[size] = Math.min(starts[size], start);
    }

    void set(int column, double value, double count) {
        values[size * width + column] = value;
        counts[size * width + column] = Math.round(count);
    }

    void set(int column, String text, double count) {
        texts[size * width + column] = text;
        counts[size * width + column] = Math.round(count);
    }

    /** Whether any record is behind the open evaluation so far. */
    boolean hasRecords() {
        for (int i = size * width; i < (size + 1) * width; i++) {
            if (counts[i] > 0) {
                return true;
            }
        }
        return false;
    }

    void keep() {
        size++;
        if (size == most) {
            flush();
        }
    }

    private void grow() {
        int room = Math.min(size * 2, most);
        starts = Arrays.copyOf(starts, room);
        ends = Arrays.copyOf(ends, room);
        counts = Arrays.copyOf(counts, room * width);
        values = Arrays.copyOf(values, room * width);
        texts = Arrays.copyOf(texts, hasTexts ? room * width : 0);
    }

    private void flush() {
        ResultRow row = new ResultRow();
        row.setNode(node);
        row.setStarts(Arrays.copyOf(starts, size));
        row.setEnds(Arrays.copyOf(ends, size));
        row.setCounts(Arrays.copyOf(counts, size * width));
        row.setValues(Arrays.copyOf(values, size * width));
        if (hasTexts) {
            row.setTexts(Arrays.copyOf(texts, size * width));
        }
        full.add(row);
        size = 0;
    }

    /** Moves all kept evaluations to {@code rows}. */
    void take(List<ResultRow> rows) {
        if (size > 0) {
            flush();
        }
        rows.addAll(full);
        full.clear();
    }
}
