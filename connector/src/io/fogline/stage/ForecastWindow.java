package io.fogline.stage;

/** FORECAST in a sliding window; its buckets end where the window ends. */
final class ForecastWindow extends CellWindow {
    private final Holt holt;
    private final FoldSet fold;
    private final Cells<double[]> cells = new Cells<>();

    ForecastWindow(Holt holt, FoldSet fold, StageSpec.NodeSpec node, StageSpec.Window window, long paneMs) {
        super(node, window, holt.bucketMs(), paneMs);
        this.holt = holt;
        this.fold = fold;
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
        double[] made = reachable(cell) ? fold.ofPane(pane) : null;
        if (made == null) {
            return;
        }
        int last = cells.size() - 1;
        if (last >= 0 && cells.key(last) == cell) {
            cells.set(last, fold.merge(cells.cell(last), made));
        } else {
            cells.push(cell, made);
        }
    }

    @Override
    boolean evaluate(long end, Results results) {
        long to = end - offset;
        while (cells.size() > 0 && cells.key(0) < startAt(end)) {
            cells.drop(1);
        }
        double[] sums = new double[(int) ((length + holt.bucketMs() - 1) / holt.bucketMs())];
        double[] counts = new double[sums.length];
        double records = 0;
        for (int i = 0; i < cells.size() && cells.key(i) < to; i++) {
            int bucket = sums.length - 1 - (int) ((to - 1 - cells.key(i)) / holt.bucketMs());
            sums[bucket] += cells.cell(i)[0];
            counts[bucket] += cells.cell(i)[1];
            records += cells.cell(i)[1];
        }
        if (records > 0) {
            results.set(holt.column(), holt.forecast(sums, counts), records);
        }
        while (cells.size() > 0 && cells.key(0) < startAt(end + every)) {
            cells.drop(1);
        }
        return records > 0;
    }

    @Override
    boolean isEmpty() {
        return cells.size() == 0;
    }

    @Override
    void write(StateWriter out) {
        cells.write(out, fold::write);
    }

    @Override
    void read(StateReader in) {
        cells.read(in, fold::read);
    }
}
