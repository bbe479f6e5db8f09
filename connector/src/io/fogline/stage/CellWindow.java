package io.fogline.stage;

/**
 * A part of an {@code every} node: a time window [E - offset - length, E - offset) that slides over
 * cells of its own grain. Panes come in order and only after every evaluation at or before their
 * start was made; evaluations come in ascending order. Guarantees that cells no evaluation can need
 * any more are not kept.
 */
abstract class CellWindow {
    final long every;
    final long length;
    final long offset;
    final long grain;

    /** {@code step} is a further length that cells must divide; 0 for none. */
    CellWindow(StageSpec.NodeSpec node, StageSpec.Window window, long step, long paneMs) {
        every = node.everyMs();
        boolean timed = window.kind() == StageSpec.WindowKind.TIME;
        length = timed ? window.length() : every;
        offset = window.offset();
        grain = gcd(gcd(length, offset), gcd(every, step));
        if (grain % paneMs != 0) {
            throw new IllegalArgumentException("stage: node " + node.id() + ": a window of " + length + " ms, offset "
                    + offset + " ms, every " + every + " ms does not fit panes of " + paneMs + " ms");
        }
    }

    private static long gcd(long a, long b) {
        return b == 0 ? a : gcd(b, a % b);
    }

    /** The start of the window of the evaluation at {@code end}. */
    final long startAt(long end) {
        return end - offset - length;
    }

    long cellOf(Pane pane) {
        return Math.floorDiv(pane.start(), grain) * grain;
    }

    /** False when the periods between windows swallow the cell. */
    boolean reachable(long cell) {
        return startAt(first(cell)) <= cell;
    }

    /** The first evaluation at which the cell has wholly passed. */
    private long first(long cell) {
        long end = cell + grain + offset;
        return -Math.floorDiv(-end, every) * every;
    }

    /** The first evaluation at or after {@code from} whose window holds a cell, or {@link Long#MAX_VALUE}. */
    final long next(long from) {
        long cell = firstHeld(from == Long.MIN_VALUE ? from : startAt(from));
        return cell == Long.MAX_VALUE ? cell : Math.max(from, first(cell));
    }

    /** How far before an evaluation the window starts; 0 when that depends on its records. */
    long reach() {
        return offset + length;
    }

    /** Whether records in this window make the node evaluate. */
    abstract boolean triggers();

    /** The start of the first held cell not below {@code low}, or {@link Long#MAX_VALUE}. */
    abstract long firstHeld(long low);

    abstract void add(Pane pane);

    /** Sets this part's columns for the evaluation at {@code end}; true if its window holds a record. */
    abstract boolean evaluate(long end, Results results);

    abstract boolean isEmpty();

    abstract void write(StateWriter out);

    abstract void read(StateReader in);
}
