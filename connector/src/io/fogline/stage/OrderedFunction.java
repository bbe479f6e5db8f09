package io.fogline.stage;

/** A filter that takes the values of a key one by one, in a state of {@code width} numbers, NaN at first. */
interface OrderedFunction {
    int width();

    /** Takes the next value into the state; {@code first} for the very first one. */
    void step(double[] state, double value, boolean first);

    double value(double[] state);
}
