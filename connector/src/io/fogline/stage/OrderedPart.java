package io.fogline.stage;

import java.util.Arrays;

/** A filter over all values of a key in time order. */
final class OrderedPart extends RecordPart {
    private final OrderedFunction function;
    private final int column;
    private final int input;
    private final double[] state;
    private long count;

    OrderedPart(OrderedFunction function, StageSpec.Aggregate aggregate) {
        Functions.check(aggregate, aggregate.inputs().length == 1, "needs one input of the events");
        this.function = function;
        column = aggregate.column();
        input = aggregate.inputs()[0];
        state = new double[function.width()];
        Arrays.fill(state, Double.NaN);
    }

    @Override
    boolean add(Records records, int record) {
        double value = records.input(record, input);
        if (value != value) {
            return false;
        }
        function.step(state, value, count == 0);
        count++;
        return true;
    }

    @Override
    void evaluate(long time, Results results) {
        if (count > 0) {
            results.set(column, function.value(state), count);
        }
    }

    @Override
    long expiry() {
        return count == 0 ? Long.MIN_VALUE : NEVER;
    }

    @Override
    boolean isNew() {
        return count == 0;
    }

    @Override
    void reset() {
        count = 0;
        Arrays.fill(state, Double.NaN);
    }

    @Override
    void write(StateWriter out) {
        out.putLong(count);
        out.putDoubles(state, 0, state.length);
    }

    @Override
    void read(StateReader in) {
        count = in.getLong();
        in.getDoubles(state, 0, state.length);
    }
}
