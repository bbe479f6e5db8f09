package io.fogline.stage;

/**
 * Sliding fold by aligned blocks: time is cut into blocks of the window's length, and a window is
 * the fold of the end of one block and the beginning of the next. A constant number of merges a cell
 * and an evaluation, and the order of merging depends on times only, never on batches.
 */
final class FoldWindow<T> extends CellWindow {
    private final Fold<T> fold;
    private final FoldQueue<T> cells;
    private long block = Long.MIN_VALUE;

    FoldWindow(Fold<T> fold, StageSpec.NodeSpec node, StageSpec.Window window, long paneMs) {
        super(node, window, 0, paneMs);
        this.fold = fold;
        cells = new FoldQueue<>(fold);
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
        T made = fold.ofPane(pane);
        if (made == null) {
            return;
        }
        if (cells.waiting() && cells.key(cells.size() - 1) == cell) {
            cells.mergeLast(made);
        } else {
            cells.push(cell, made);
        }
    }

    private void enterBlock(long next) {
        if (next == block) {
            return;
        }
        if (next == block + 1) {
            cells.flip();
        } else {
            cells.dropEntered();
        }
        block = next;
    }

    @Override
    boolean evaluate(long end, Results results) {
        long to = end - offset;
        while (cells.waiting() && cells.nextKey() < to) {
            enterBlock(Math.floorDiv(cells.nextKey(), length));
            cells.enter();
        }
        enterBlock(Math.floorDiv(to - 1, length));
        cells.dropFrontBelow(startAt(end));
        T total = cells.total();
        fold.evaluate(total, results);
        cells.dropPassed(startAt(end + every));
        return fold.count(total) > 0;
    }

    @Override
    boolean isEmpty() {
        return cells.size() == 0;
    }

    @Override
    void write(StateWriter out) {
        out.putLong(block);
        cells.write(out);
    }

    @Override
    void read(StateReader in) {
        block = in.getLong();
        cells.read(in);
    }
}
