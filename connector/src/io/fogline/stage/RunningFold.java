package io.fogline.stage;

/** The fold of all records since the beginning, or since the last {@link #reset}. */
final class RunningFold<T> extends RecordPart {
    private final Fold<T> fold;
    private T total;

    RunningFold(Fold<T> fold) {
        this.fold = fold;
    }

    @Override
    boolean add(Records records, int record) {
        T cell = fold.ofRecord(records, record);
        total = fold.join(total, cell);
        return cell != null;
    }

    @Override
    void evaluate(long time, Results results) {
        fold.evaluate(total, results);
    }

    @Override
    long expiry() {
        return total == null ? Long.MIN_VALUE : NEVER;
    }

    @Override
    boolean isNew() {
        return total == null;
    }

    @Override
    void reset() {
        total = null;
    }

    @Override
    void write(StateWriter out) {
        out.putBoolean(total != null);
        if (total != null) {
            fold.write(total, out);
        }
    }

    @Override
    void read(StateReader in) {
        total = in.getBoolean() ? fold.read(in) : null;
    }
}
