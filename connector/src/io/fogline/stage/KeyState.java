package io.fogline.stage;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * All nodes of one key. Rows wait until their pane is complete, and panes are given to the nodes in
 * order, so what comes out depends on the records alone, not on when rows came. The state as bytes is
 * all there is to keep between batches.
 */
final class KeyState {
    private static final int VERSION = 1;

    private final long fingerprint;
    private final StageSpec.Channel channel;
    private final long paneMs;
    private final List<Node> nodes = new ArrayList<>();
    private final List<PaneRow> waiting = new ArrayList<>();
    private boolean sorted = true;
    private long complete = Long.MIN_VALUE;

    KeyState(StageSpec spec, int channel) {
        this.channel = spec.channels().get(channel);
        this.paneMs = spec.paneMs();
        this.fingerprint = spec.fingerprint();
        for (StageSpec.NodeSpec node : spec.nodesOf(channel)) {
            nodes.add(switch (node.kind()) {
                case EVERY -> new EveryNode(spec, node);
                case ARRIVAL -> new ArrivalNode(spec, node);
                case SESSION -> new SessionNode(spec, node);
            });
        }
    }

    /** Adds a row of a pane that is not complete yet; rows may come in any order. */
    void add(PaneRow row) {
        long start = row.getPane();
        if (Math.floorMod(start, paneMs) != 0 || complete != Long.MIN_VALUE && start < complete) {
            throw new IllegalStateException("stage: a row of pane " + start + " when panes of " + paneMs
                    + " ms are complete up to " + complete);
        }
        sorted &= waiting.isEmpty() || waiting.get(waiting.size() - 1).getPane() <= start;
        waiting.add(row);
    }

    /** Every pane that ends at or before {@code to} is there: makes all evaluations due by then. */
    void advance(long to) {
        if (!sorted) {
            waiting.sort(Comparator.comparingLong(PaneRow::getPane));
            sorted = true;
        }
        int fed = 0;
        while (fed < waiting.size() && waiting.get(fed).getPane() + paneMs <= to) {
            int end = fed + 1;
            while (end < waiting.size() && waiting.get(end).getPane() == waiting.get(fed).getPane()) {
                end++;
            }
            feed(new Pane(channel, waiting.get(fed).getPane(), waiting.subList(fed, end)));
            fed = end;
        }
        waiting.subList(0, fed).clear();
        for (int i = 0; i < nodes.size(); i++) {
            nodes.get(i).advance(to);
        }
        complete = Math.max(complete, to);
    }

    private void feed(Pane pane) {
        for (int i = 0; i < nodes.size(); i++) {
            nodes.get(i).advance(pane.start());
            nodes.get(i).add(pane);
        }
    }

    /** The earliest time to which advancing would change anything without new rows, or {@link Long#MAX_VALUE}. */
    long due() {
        long due = waiting.isEmpty() ? Long.MAX_VALUE : waiting.get(0).getPane() + paneMs;
        for (Node node : nodes) {
            due = Math.min(due, node.due());
        }
        return due;
    }

    /** Moves the evaluations made so far to {@code rows}. */
    void take(List<ResultRow> rows) {
        nodes.forEach(node -> node.take(rows));
    }

    /** Whether there is nothing to keep. */
    boolean isEmpty() {
        return waiting.isEmpty() && nodes.stream().allMatch(Node::isEmpty);
    }

    byte[] toBytes() {
        StateWriter out = new StateWriter();
        out.putLong(VERSION);
        out.putLong(fingerprint);
        out.putLong(complete);
        out.putLong(waiting.size());
        waiting.forEach(row -> PaneRows.write(row, out));
        nodes.forEach(node -> node.write(out));
        return out.toBytes();
    }

    /** Becomes what the bytes say, whatever it was before. */
    void read(byte[] bytes) {
        StateReader in = new StateReader(bytes);
        long version = in.getLong();
        if (version != VERSION) {
            throw new IllegalStateException("stage: state of version " + version + ", this is version " + VERSION);
        }
        if (in.getLong() != fingerprint) {
            throw new IllegalStateException("stage: the kept state belongs to another spec; start from a new checkpoint");
        }
        complete = in.getLong();
        waiting.clear();
        sorted = true;
        for (int left = in.getInt(); left > 0; left--) {
            waiting.add(PaneRows.read(in));
        }
        nodes.forEach(node -> node.read(in));
    }
}
