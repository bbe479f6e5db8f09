package io.fogline.stage;

/**
 * What has no end in an {@code every} node: running folds of panes, and parts that see every record.
 * It makes a node evaluate only where nothing else does, at periods in which it got a record.
 */
final class RunningWindow extends CellWindow {
    /** Either a running fold of panes or a part that sees records. */
    interface Inner {
        /** True if the pane holds a record for it. */
        boolean add(Pane pane);

        void evaluate(long end, Results results);

        /** True as long as it equals a new one. */
        boolean isNew();

        void write(StateWriter out);

        void read(StateReader in);
    }

    private final Inner inner;
    private final boolean startsWithPeriod;
    private long latest = Long.MIN_VALUE;

    RunningWindow(Inner inner, StageSpec.NodeSpec node, StageSpec.Window window, long paneMs) {
        super(node, new StageSpec.Window(StageSpec.WindowKind.RUNNING, 0, 0), 0, paneMs);
        this.inner = inner;
        this.startsWithPeriod = window.kind() == StageSpec.WindowKind.RUNNING;
    }

    @Override
    long reach() {
        return startsWithPeriod ? length : 0;
    }

    @Override
    boolean triggers() {
        return false;
    }

    @Override
    long firstHeld(long low) {
        return latest != Long.MIN_VALUE && latest >= low ? latest : Long.MAX_VALUE;
    }

    @Override
    void add(Pane pane) {
        if (inner.add(pane)) {
            latest = cellOf(pane);
        }
    }

    @Override
    boolean evaluate(long end, Results results) {
        inner.evaluate(end, results);
        return latest == startAt(end);
    }

    @Override
    boolean isEmpty() {
        return inner.isNew();
    }

    @Override
    void write(StateWriter out) {
        out.putLong(latest);
        inner.write(out);
    }

    @Override
    void read(StateReader in) {
        latest = in.getLong();
        inner.read(in);
    }

    /** A running fold of whole panes. */
    static final class OfPanes<T> implements Inner {
        private final Fold<T> fold;
        private T total;

        OfPanes(Fold<T> fold) {
            this.fold = fold;
        }

        @Override
        public boolean add(Pane pane) {
            T made = fold.ofPane(pane);
            total = fold.join(total, made);
            return made != null;
        }

        @Override
        public void evaluate(long end, Results results) {
            fold.evaluate(total, results);
        }

        @Override
        public boolean isNew() {
            return total == null;
        }

        @Override
        public void write(StateWriter out) {
            out.putBoolean(total != null);
            if (total != null) {
                fold.write(total, out);
            }
        }

        @Override
        public void read(StateReader in) {
            total = in.getBoolean() ? fold.read(in) : null;
        }
    }

    /** A part that is given the records of each pane one by one; its own inputs order equal times. */
    record OfRecords(RecordPart part, int[] inputs) implements Inner {
        @Override
        public boolean add(Pane pane) {
            Records records = pane.records();
            int[] order = records.orderedBy(inputs);
            boolean any = false;
            for (int i = 0; i < records.size(); i++) {
                any |= part.add(records, order == null ? i : order[i]);
            }
            return any;
        }

        @Override
        public void evaluate(long end, Results results) {
            part.evaluate(RecordPart.micros(end), results);
        }

        @Override
        public boolean isNew() {
            return part.isNew();
        }

        @Override
        public void write(StateWriter out) {
            part.write(out);
        }

        @Override
        public void read(StateReader in) {
            part.read(in);
        }
    }
}
