package io.fogline.stage;

import java.util.Arrays;

/**
 * The numeric aggregates that look at the same window, as one fold: their partials lie side by side
 * in one array, a partial that several aggregates use only once.
 */
final class FoldSet implements Fold<double[]> {
    /** An aggregate: where its partials are in a cell, and its inputs if it is fed from records. */
    private record Column(int column, NumericFunction function, int[] at, int[] inputs) {}

    private PartialKind[] kinds = {};
    private int[] offsets = {};
    private int[] sources = {};
    private Column[] columns = {};
    private final double[] scratch = new double[2];
    private int width;
    private boolean fromRows;
    private boolean fromRecords;

    void add(StageSpec.Aggregate aggregate, NumericFunction function, StageSpec.Channel channel) {
        PartialKind[] needed = function.kinds();
        boolean records = aggregate.inputs().length > 0;
        Functions.check(aggregate, records ? aggregate.inputs().length == function.inputs()
                : aggregate.partials().length == needed.length, "needs " + function.inputs() + " inputs or "
                + needed.length + " partials");
        int[] at = new int[needed.length];
        for (int i = 0; i < needed.length; i++) {
            if (records) {
                at[i] = slot(needed[i], -1);
            } else {
                StageSpec.Partial partial = channel.partials().get(aggregate.partials()[i]);
                Functions.check(aggregate, partial.kind() == needed[i],
                        "partial " + i + " must be " + needed[i] + ", not " + partial.kind());
                at[i] = slot(needed[i], partial.at());
            }
        }
        fromRecords |= records;
        fromRows |= !records;
        columns = Arrays.copyOf(columns, columns.length + 1);
        columns[columns.length - 1] =
                new Column(aggregate.column(), function, at, records ? aggregate.inputs() : null);
    }

    private int slot(PartialKind kind, int source) {
        for (int i = 0; i < kinds.length; i++) {
            if (source >= 0 && kinds[i] == kind && sources[i] == source) {
                return offsets[i];
            }
        }
        int last = kinds.length;
        kinds = Arrays.copyOf(kinds, last + 1);
        sources = Arrays.copyOf(sources, last + 1);
        offsets = Arrays.copyOf(offsets, last + 1);
        kinds[last] = kind;
        sources[last] = source;
        offsets[last] = width;
        width += kind.width;
        return offsets[last];
    }

    private double[] cleared() {
        double[] cell = new double[width];
        for (int i = 0; i < kinds.length; i++) {
            kinds[i].clear(cell, offsets[i]);
        }
        return cell;
    }

    @Override
    public double[] ofPane(Pane pane) {
        double[] cell = null;
        if (fromRows) {
            for (PaneRow row : pane.rows()) {
                cell = join(cell, ofRow(row));
            }
        }
        if (fromRecords) {
            Records records = pane.records();
            for (int i = 0; i < records.size(); i++) {
                cell = join(cell, ofRecord(records, i));
            }
        }
        return count(cell) > 0 ? cell : null;
    }

    private double[] ofRow(PaneRow row) {
        double[] cell = cleared();
        for (int i = 0; i < kinds.length; i++) {
            int source = sources[i];
            if (source >= 0) {
                int wide = kinds[i].width;
                System.arraycopy(Pane.nums(row, source, wide), source, cell, offsets[i], wide);
            }
        }
        return cell;
    }

    @Override
    public double[] ofRecord(Records records, int record) {
        double[] cell = null;
        for (int i = 0; i < columns.length; i++) {
            Column column = columns[i];
            if (column.inputs != null && records.copyInputs(record, column.inputs, scratch)) {
                cell = cell == null ? cleared() : cell;
                column.function.lift(cell, column.at, records.time(record), scratch);
            }
        }
        return cell;
    }

    @Override
    public double[] merge(double[] earlier, double[] later) {
        double[] cell = Arrays.copyOf(earlier, width);
        for (int i = 0; i < kinds.length; i++) {
            int at = offsets[i];
            kinds[i].merge(cell, at, later, at);
        }
        return cell;
    }

    @Override
    public double count(double[] cell) {
        double most = 0;
        for (int i = 0; cell != null && i < columns.length; i++) {
            double count = columns[i].function.count(cell, columns[i].at);
            most = count > most ? count : most;
        }
        return most;
    }

    @Override
    public void evaluate(double[] cell, Results results) {
        for (int i = 0; cell != null && i < columns.length; i++) {
            Column column = columns[i];
            double count = column.function.count(cell, column.at);
            if (count > 0) {
                results.set(column.column, column.function.value(cell, column.at), count);
            }
        }
    }

    @Override
    public void write(double[] cell, StateWriter out) {
        out.putDoubles(cell, 0, width);
    }

    @Override
    public double[] read(StateReader in) {
        double[] cell = new double[width];
        in.getDoubles(cell, 0, width);
        return cell;
    }
}
