package io.fogline.stage;

import java.util.Map;
import java.util.TreeMap;

/**
 * The fold of the records in (t - offset - length, t - offset] at a grain of a twentieth of the length:
 * what is kept is bounded however many records come, and they may come out of order.
 */
final class GrainFold<T> extends RecordPart {
    private static final int GRAINS = 20;

    private final Fold<T> fold;
    private final StageSpec.Window window;
    private final long grain;
    private final TreeMap<Long, T> grains = new TreeMap<>();

    GrainFold(Fold<T> fold, StageSpec.Window window) {
        this.fold = fold;
        this.window = window;
        grain = Math.max(1, window.length() * 1000 / GRAINS);
    }

    @Override
    boolean add(Records records, int record) {
        T cell = fold.ofRecord(records, record);
        if (cell != null) {
            grains.merge(Math.floorDiv(micros(records.time(record)), grain), cell, fold::join);
        }
        return cell != null;
    }

    @Override
    void evaluate(long time, Results results) {
        long end = time - window.offset() * 1000;
        long from = Math.floorDiv(end - window.length() * 1000, grain);
        grains.headMap(from, true).clear();
        T total = null;
        for (T cell : grains.headMap(Math.floorDiv(end, grain), true).values()) {
            total = fold.join(total, cell);
        }
        fold.evaluate(total, results);
    }

    @Override
    long reach() {
        return window.offset() + window.length();
    }

    @Override
    long expiry() {
        return grains.isEmpty() ? Long.MIN_VALUE : (grains.lastKey() + 1) * grain + reach() * 1000;
    }

    @Override
    boolean isNew() {
        return grains.isEmpty();
    }

    @Override
    void reset() {
        grains.clear();
    }

    @Override
    void write(StateWriter out) {
        out.putLong(grains.size());
        for (Map.Entry<Long, T> entry : grains.entrySet()) {
            out.putLong(entry.getKey());
            fold.write(entry.getValue(), out);
        }
    }

    @Override
    void read(StateReader in) {
        grains.clear();
        for (int left = in.getInt(); left > 0; left--) {
            long key = in.getLong();
            grains.put(key, fold.read(in));
        }
    }
}
