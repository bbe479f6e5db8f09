package io.fogline.source;

import io.fogline.decode.Record;
import java.io.Serializable;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.util.AccumulatorV2;

/**
 * What tasks found, brought to the driver. Counts are kept per slice, and a slice that is read again
 * (a retried task, a second action on a batch) replaces its own counts, so nothing counts twice.
 */
final class Progress extends AccumulatorV2<Progress.Found, Map<String, Progress.Found>> {
    /** The outcome of reading one slice; {@code newest} is in microseconds. */
    record Found(String slice, long records, long bad, long late, long bytes, long newest) implements Serializable {
        static final Found NOTHING = new Found("", 0, 0, 0, 0, Record.NO_TIME);

        Found plus(Found other) {
            return new Found(
                    "",
                    records + other.records,
                    bad + other.bad,
                    late + other.late,
                    bytes + other.bytes,
                    Math.max(newest, other.newest));
        }
    }

    private final ConcurrentHashMap<String, Found> slices = new ConcurrentHashMap<>();

    @Override
    public boolean isZero() {
        return slices.isEmpty();
    }

    @Override
    public Progress copy() {
        Progress copy = new Progress();
        copy.slices.putAll(slices);
        return copy;
    }

    @Override
    public void reset() {
        slices.clear();
    }

    @Override
    public void add(Found found) {
        slices.put(found.slice(), found);
    }

    @Override
    public void merge(AccumulatorV2<Found, Map<String, Found>> other) {
        slices.putAll(other.value());
    }

    @Override
    public Map<String, Found> value() {
        return slices;
    }

    /** The sum over all slices. */
    Found total() {
        return slices.values().stream().reduce(Found.NOTHING, Found::plus);
    }
}
