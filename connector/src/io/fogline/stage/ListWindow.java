package io.fogline.stage;

/** Sliding window over all values, kept sorted: an evaluation costs one pass over the window. */
final class ListWindow extends CellWindow {
    private final ListSet lists;
    private final Cells<Samples> cells = new Cells<>();
    private Samples sorted;

    ListWindow(ListSet lists, StageSpec.NodeSpec node, StageSpec.Window window, long paneMs) {
        super(node, window, 0, paneMs);
        this.lists = lists;
    }

    private Samples sorted() {
        if (sorted == null) {
            sorted = lists.samples();
        }
        return sorted;
    }

    @Override
    boolean triggers() {
        return true;
    }

    @Override
    long firstHeld(long low) {
        return cells.firstFrom(low);
    }

    @Override
    void add(Pane pane) {
        long cell = cellOf(pane);
        if (!reachable(cell)) {
            return;
        }
        int last = cells.size() - 1;
        if (last >= 0 && cells.key(last) == cell) {
            lists.gather(pane, cell, cells.cell(last));
            return;
        }
        Samples fresh = lists.samples();
        lists.gather(pane, cell, fresh);
        if (fresh.size() > 0) {
            cells.push(cell, fresh);
        }
    }

    @Override
    boolean evaluate(long end, Results results) {
        Samples fresh = lists.samples();
        for (int i = 0; i < cells.size() && cells.key(i) < end - offset; i++) {
            if (cells.cell(i) != null) {
                fresh.addAll(cells.cell(i));
                cells.set(i, null);
            }
        }
        sorted().merge(fresh, startAt(end));
        lists.evaluate(sorted, results);
        boolean held = sorted.size() > 0;
        dropPassed(end);
        return held;
    }

    private void dropPassed(long end) {
        while (cells.size() > 0 && cells.key(0) < startAt(end + every)) {
            cells.drop(1);
        }
        if (cells.size() == 0) {
            sorted.clear();
        }
    }

    @Override
    boolean isEmpty() {
        return cells.size() == 0;
    }

    @Override
    void write(StateWriter out) {
        cells.write(out, Samples::write);
        sorted().write(out);
    }

    @Override
    void read(StateReader in) {
        cells.read(in, reader -> {
            Samples fresh = lists.samples();
            fresh.read(reader);
            return fresh;
        });
        sorted().read(in);
    }
}
