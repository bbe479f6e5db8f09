package io.fogline.stage;

import java.util.List;

/**
 * Evaluates at every multiple of its period for which some window holds a record; grid points
 * without one cost nothing, however many there are.
 */
final class EveryNode implements Node {
    private final List<CellWindow> parts;
    private final Results results;
    private final long every;
    private final long reach;
    private final boolean timed;
    private long from = Long.MIN_VALUE;
    private long next = Long.MAX_VALUE;

    EveryNode(StageSpec spec, StageSpec.NodeSpec node) {
        parts = Parts.ofCells(spec, node);
        results = Parts.results(node);
        every = node.everyMs();
        timed = parts.stream().anyMatch(CellWindow::triggers);
        reach = parts.stream().mapToLong(CellWindow::reach).max().orElse(0);
    }

    private boolean counts(CellWindow part) {
        return !timed || part.triggers();
    }

    @Override
    public void add(Pane pane) {
        for (CellWindow part : parts) {
            part.add(pane);
        }
        findNext();
    }

    private void findNext() {
        next = Long.MAX_VALUE;
        for (CellWindow part : parts) {
            if (counts(part)) {
                next = Math.min(next, part.next(from));
            }
        }
    }

    @Override
    public void advance(long complete) {
        while (next <= complete) {
            evaluate(next);
            from = next + every;
            findNext();
        }
    }

    private void evaluate(long end) {
        results.open(end - reach, end);
        boolean held = false;
        for (CellWindow part : parts) {
            held |= part.evaluate(end, results) && counts(part);
        }
        if (held) {
            results.keep();
        }
    }

    @Override
    public long due() {
        return next;
    }

    @Override
    public boolean isEmpty() {
        return next == Long.MAX_VALUE && parts.stream().allMatch(CellWindow::isEmpty);
    }

    @Override
    public void take(List<ResultRow> rows) {
        results.take(rows);
    }

    @Override
    public void write(StateWriter out) {
        out.putLong(from);
        parts.forEach(part -> part.write(out));
    }

    @Override
    public void read(StateReader in) {
        from = in.getLong();
        parts.forEach(part -> part.read(in));
        findNext();
    }
}
