package io.fogline.stage;

/**
 * The fold of the last n records, or of those in (t - offset - length, t - offset], with a constant
 * number of merges a record on average.
 */
final class TrailingFold<T> extends RecordPart {
    private final Fold<T> fold;
    private final StageSpec.Window window;
    private final boolean timed;
    private final FoldQueue<T> queue;

    TrailingFold(Fold<T> fold, StageSpec.Window window) {
        this.fold = fold;
        this.window = window;
        timed = window.kind() == StageSpec.WindowKind.TIME;
        queue = new FoldQueue<>(fold);
    }

    @Override
    boolean add(Records records, int record) {
        T cell = fold.ofRecord(records, record);
        if (cell == null) {
            return false;
        }
        queue.push(micros(records.time(record)), cell);
        if (!timed) {
            queue.enter();
            while (queue.entered() > window.length()) {
                queue.leave();
            }
        }
        return true;
    }

    @Override
    void evaluate(long time, Results results) {
        if (timed) {
            slide(time - window.offset() * 1000);
        } else if (queue.size() > 0) {
            results.startAt(Math.floorDiv(queue.key(0), 1000L));
        }
        fold.evaluate(queue.total(), results);
    }

    private void slide(long to) {
        while (queue.waiting() && queue.nextKey() <= to) {
            queue.enter();
        }
        while (queue.entered() > 0 && queue.key(0) <= to - window.length() * 1000) {
            queue.leave();
        }
    }

    @Override
    long reach() {
        return timed ? window.offset() + window.length() : 0;
    }

    @Override
    long expiry() {
        if (queue.size() == 0) {
            return Long.MIN_VALUE;
        }
        return timed ? queue.key(queue.size() - 1) + reach() * 1000 : NEVER;
    }

    @Override
    boolean isNew() {
        return queue.size() == 0;
    }

    @Override
    void reset() {
        queue.clear();
    }

    @Override
    void write(StateWriter out) {
        queue.write(out);
    }

    @Override
    void read(StateReader in) {
        queue.read(in);
    }
}
