package io.fogline.stage;

import java.util.ArrayList;
import java.util.List;

/**
 * Evaluates when a session ends: a session goes on while each record comes less than the gap after
 * the one before; its window is [first, last + gap). Records without a value for any of the node's
 * inputs do not count.
 */
final class SessionNode implements Node {
    private final List<RecordPart> parts;
    private final List<RecordPart> perSession;
    private final Results results;
    private final int[] inputs;
    private final long gap;
    private boolean open;
    private long first;
    private long last;

    SessionNode(StageSpec spec, StageSpec.NodeSpec node) {
        perSession = Parts.ofRecords(spec, node, StageSpec.WindowKind.SESSION);
        parts = new ArrayList<>(perSession);
        parts.addAll(Parts.ofRecords(spec, node, StageSpec.WindowKind.RUNNING));
        results = Parts.results(node);
        inputs = Parts.inputs(node);
        gap = Parts.gap(node) * 1000;
    }

    @Override
    public void add(Pane pane) {
        Records records = pane.records();
        for (int i = 0; i < records.size(); i++) {
            if (records.hasAny(i, inputs)) {
                add(records, i);
            }
        }
    }

    private void add(Records records, int record) {
        long time = RecordPart.micros(records.time(record));
        if (open && time - last >= gap) {
            end();
        }
        if (!open) {
            open = true;
            first = time;
        }
        last = time;
        for (RecordPart part : parts) {
            part.add(records, record);
        }
    }

    private void end() {
        results.open(Math.floorDiv(first, 1000L), Math.floorDiv(last + gap, 1000L));
        for (RecordPart part : parts) {
            part.evaluate(last, results);
        }
        if (results.hasRecords()) {
            results.keep();
        }
        perSession.forEach(RecordPart::reset);
        open = false;
    }

    @Override
    public void advance(long complete) {
        if (due() <= complete) {
            end();
        }
    }

    @Override
    public long due() {
        return open ? -Math.floorDiv(-(last + gap), 1000L) : Long.MAX_VALUE;
    }

    @Override
    public boolean isEmpty() {
        return !open && parts.stream().allMatch(RecordPart::isNew);
    }

    @Override
    public void take(List<ResultRow> rows) {
        results.take(rows);
    }

    @Override
    public void write(StateWriter out) {
        out.putBoolean(open);
        out.putLong(first);
        out.putLong(last);
        parts.forEach(part -> part.write(out));
    }

    @Override
    public void read(StateReader in) {
        open = in.getBoolean();
        first = in.getLong();
        last = in.getLong();
        parts.forEach(part -> part.read(in));
    }
}
