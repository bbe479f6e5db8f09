package io.fogline.stage;

import java.time.Instant;

/** One output row: the evaluations of one node and key that became due together, or a handed-through result. */
public final class ResultRow {
    private static final long[] NO_LONGS = {};
    private static final double[] NO_DOUBLES = {};
    private static final String[] NO_TEXTS = {};

    private int node;
    private String key;
    private long[] starts = NO_LONGS;
    private long[] ends = NO_LONGS;
    private long[] counts = NO_LONGS;
    private double[] values = NO_DOUBLES;
    private String[] texts = NO_TEXTS;
    private String pass;
    private Instant time;

    /** A finished result on its way through. */
    static ResultRow passed(String key, PaneRow row) {
        ResultRow result = new ResultRow();
        result.node = -1;
        result.key = key;
        result.pass = row.getPass();
        result.time = row.get_time();
        return result;
    }

    public int getNode() {
        return node;
    }

    public void setNode(int node) {
        this.node = node;
    }

    public String getKey() {
        return key;
    }

    public void setKey(String key) {
        this.key = key;
    }

    public long[] getStarts() {
        return starts;
    }

    public void setStarts(long[] starts) {
        this.starts = starts;
    }

    public long[] getEnds() {
        return ends;
    }

    public void setEnds(long[] ends) {
        this.ends = ends;
    }

    public long[] getCounts() {
        return counts;
    }

    public void setCounts(long[] counts) {
        this.counts = counts;
    }

    public double[] getValues() {
        return values;
    }

    public void setValues(double[] values) {
        this.values = values;
    }

    public String[] getTexts() {
        return texts;
    }

    public void setTexts(String[] texts) {
        this.texts = texts;
    }

    public String getPass() {
        return pass;
    }

    public void setPass(String pass) {
        this.pass = pass;
    }

    public Instant get_time() {
        return time;
    }

    public void set_time(Instant time) {
        this.time = time;
    }
}
