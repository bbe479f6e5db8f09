package io.fogline.stage;

/**
 * A function of numeric partials. It names the kinds it needs in order; {@code at[i]} is then the
 * position of the i-th in a cell. Values and counts of a cell over nothing are NaN or 0.
 */
abstract class NumericFunction {
    private final PartialKind[] kinds;
    private final int inputs;

    /** {@code inputs} is the number of event inputs the function takes when it is fed from records. */
    NumericFunction(int inputs, PartialKind... kinds) {
        this.inputs = inputs;
        this.kinds = kinds;
    }

    PartialKind[] kinds() {
        return kinds;
    }

    int inputs() {
        return inputs;
    }

    /** Number of records behind the cell; NaN counts as none. */
    abstract double count(double[] cell, int[] at);

    /** The value; only asked for when there are records. */
    abstract double value(double[] cell, int[] at);

    /** Fills a cleared cell from one record: time in ms and its inputs, none of which is missing. */
    abstract void lift(double[] cell, int[] at, double time, double[] inputs);
}
