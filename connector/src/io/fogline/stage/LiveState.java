package io.fogline.stage;

import java.util.ArrayList;
import java.util.List;

/**
 * All nodes of one key in real time: every record is evaluated when it comes. One that comes after a
 * newer record of its key counts as of that record's time, so results never go back in time.
 */
final class LiveState {
    private static final int VERSION = 1;

    private final long fingerprint;
    private final StageSpec.Channel channel;
    private final List<Node> nodes = new ArrayList<>();
    private double newest = Double.NEGATIVE_INFINITY;

    LiveState(StageSpec spec, int channel) {
        this.channel = spec.channels().get(channel);
        this.fingerprint = spec.fingerprint();
        for (StageSpec.NodeSpec node : spec.nodesOf(channel)) {
            if (node.kind() != StageSpec.NodeKind.ARRIVAL) {
                throw new IllegalArgumentException("stage: node " + node.id() + " cannot run in real time");
            }
            nodes.add(new ArrivalNode(spec, node));
        }
    }

    /** Evaluates the records of a row. */
    void add(PaneRow row) {
        double[] times = Pane.values(row, channel.eventsAt());
        for (int i = 0; i < times.length; i++) {
            newest = Math.max(newest, times[i]);
            times[i] = newest;
        }
        Pane pane = new Pane(channel, row.getPane(), List.of(row));
        for (int i = 0; i < nodes.size(); i++) {
            nodes.get(i).add(pane);
        }
    }

    /** Moves the evaluations made so far to {@code rows}. */
    void take(List<ResultRow> rows) {
        nodes.forEach(node -> node.take(rows));
    }

    byte[] toBytes() {
        StateWriter out = new StateWriter();
        out.putLong(VERSION);
        out.putLong(fingerprint);
        out.putLong(Double.doubleToRawLongBits(newest));
        nodes.forEach(node -> node.write(out));
        return out.toBytes();
    }

    /** Becomes what the bytes say. */
    void read(byte[] bytes) {
        StateReader in = new StateReader(bytes);
        if (in.getLong() != VERSION || in.getLong() != fingerprint) {
            throw new IllegalStateException("stage: the kept state belongs to another spec; start from a new checkpoint");
        }
        newest = Double.longBitsToDouble(in.getLong());
        nodes.forEach(node -> node.read(in));
    }
}
