package io.fogline.stage;

import java.util.ArrayList;
import java.util.List;

/** The list-valued view of one source of values: where they come from and the aggregates computed from them. */
final class ListSet {
    private record Column(int column, ListFunction function) {}

    private final List<Column> columns = new ArrayList<>();
    private final int list;
    private final int[] inputs;
    private final boolean labelled;
    private final double[] scratch = new double[1];
    private boolean timed;

    ListSet(StageSpec.Aggregate first, StageSpec.Channel channel) {
        inputs = first.inputs();
        labelled = channel.labels();
        Functions.check(first, inputs.length + first.partials().length == 1, "needs one input or one VALUES partial");
        if (inputs.length == 1) {
            list = -1;
            return;
        }
        StageSpec.Partial partial = channel.partials().get(first.partials()[0]);
        Functions.check(first, partial.kind() == PartialKind.VALUES,
                "needs one input or one VALUES partial, not " + partial.kind());
        list = partial.at();
    }

    void add(StageSpec.Aggregate aggregate, ListFunction function) {
        Functions.check(aggregate, !function.needsTimes() || list < 0, "works on an input of the events");
        timed |= function.needsTimes();
        columns.add(new Column(aggregate.column(), function));
    }

    /** Keeps the records' times, whether or not a function asks for them. */
    void keepTimes() {
        timed = true;
    }

    /** An empty collection of the right make; to be called after the last {@link #add}. */
    Samples samples() {
        return new Samples(timed, labelled);
    }

    /** All values of a pane, ranked by the cell it falls in. */
    void gather(Pane pane, long rank, Samples into) {
        if (list < 0) {
            Records records = pane.records();
            for (int i = 0; i < records.size(); i++) {
                gather(records, i, rank, into);
            }
            return;
        }
        for (PaneRow row : pane.rows()) {
            for (double value : Pane.values(row, list)) {
                if (value == value) {
                    into.add(value, rank, 0, row.getPass());
                }
            }
        }
    }

    /** The value of one record, if it has one. */
    boolean gather(Records records, int record, long rank, Samples into) {
        if (!records.copyInputs(record, inputs, scratch)) {
            return false;
        }
        into.add(scratch[0], rank, RecordPart.micros(records.time(record)), records.label(record));
        return true;
    }

    void evaluate(Samples sorted, Results results) {
        for (int i = 0; sorted.size() > 0 && i < columns.size(); i++) {
            Column column = columns.get(i);
            if (column.function.isText()) {
                results.set(column.column, column.function.text(sorted), sorted.size());
            } else {
                results.set(column.column, column.function.value(sorted), sorted.size());
            }
        }
    }
}
