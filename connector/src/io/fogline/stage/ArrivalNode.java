package io.fogline.stage;

import java.util.List;

/**
 * Evaluates at every n-th record, in time order, that has a value for at least one of the node's
 * inputs; of records with the same time each sees those sorted before it. Forgets everything once
 * its windows have passed the last record.
 */
final class ArrivalNode implements Node {
    private final List<RecordPart> parts;
    private final Results results;
    private final int[] inputs;
    private final int[] ordering;
    private final int everyEvents;
    private final long reach;
    private long seen;
    private long expiry = Long.MIN_VALUE;

    ArrivalNode(StageSpec spec, StageSpec.NodeSpec node) {
        parts = Parts.ofRecords(spec, node, StageSpec.WindowKind.values());
        results = Parts.results(node);
        inputs = Parts.inputs(node);
        ordering = Parts.ordering(node);
        everyEvents = node.everyEvents();
        reach = parts.stream().mapToLong(RecordPart::reach).max().orElse(0);
    }

    @Override
    public void add(Pane pane) {
        Records records = pane.records();
        int[] order = records.orderedBy(ordering);
        for (int i = 0; i < records.size(); i++) {
            int record = order == null ? i : order[i];
            if (records.hasAny(record, inputs)) {
                add(records, record);
            }
        }
        findExpiry();
    }

    private void add(Records records, int record) {
        for (int i = 0; i < parts.size(); i++) {
            parts.get(i).add(records, record);
        }
        if (++seen % everyEvents != 0) {
            return;
        }
        double time = records.time(record);
        long micros = RecordPart.micros(time);
        long end = Math.floorDiv(micros + 1, 1000L); // a result stands 1 µs before the end of its window
        results.open(end - reach, end);
        for (int i = 0; i < parts.size(); i++) {
            parts.get(i).evaluate(micros, results);
        }
        if (results.hasRecords()) {
            results.keep();
        }
    }

    private void findExpiry() {
        expiry = seen > 0 && everyEvents > 1 ? RecordPart.NEVER : Long.MIN_VALUE;
        for (RecordPart part : parts) {
            expiry = Math.max(expiry, part.expiry());
        }
    }

    @Override
    public void advance(long complete) {
        if (due() <= complete) {
            parts.forEach(RecordPart::reset);
            seen = 0;
            findExpiry();
        }
    }

    @Override
    public long due() {
        boolean none = expiry == Long.MIN_VALUE || expiry == RecordPart.NEVER;
        return none ? Long.MAX_VALUE : -Math.floorDiv(-expiry, 1000L);
    }

    @Override
    public boolean isEmpty() {
        return expiry == Long.MIN_VALUE;
    }

    @Override
    public void take(List<ResultRow> rows) {
        results.take(rows);
    }

    @Override
    public void write(StateWriter out) {
        out.putLong(seen);
        parts.forEach(part -> part.write(out));
    }

    @Override
    public void read(StateReader in) {
        seen = in.getLong();
        parts.forEach(part -> part.read(in));
        findExpiry();
    }
}
