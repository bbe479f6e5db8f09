package io.fogline.stage;

/** A function of all values of a window, which it sees in ascending order and never empty. */
interface ListFunction {
    /** The number, for functions whose result is one. */
    default double value(Samples sorted) {
        throw new IllegalStateException("the result is a text");
    }

    /** The JSON text, for functions whose result is a list. */
    default String text(Samples sorted) {
        throw new IllegalStateException("the result is a number");
    }

    default boolean isText() {
        return false;
    }

    /** Whether it needs the records' times, so that it can only be fed from events. */
    default boolean needsTimes() {
        return false;
    }
}
