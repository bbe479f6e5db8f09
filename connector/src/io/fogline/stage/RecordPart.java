package io.fogline.stage;

/**
 * A part of a node that sees every record of the key in time order. Evaluations come with ascending
 * times, none before the last record. Times are microseconds here.
 */
abstract class RecordPart {
    /** Where nothing held can expire by time alone. */
    static final long NEVER = Long.MAX_VALUE;

    /** Milliseconds as whole microseconds. */
    static long micros(double millis) {
        return Math.round(millis * 1000);
    }

    /** Takes the record if it has the inputs asked for. */
    abstract boolean add(Records records, int record);

    /** Sets this part's columns for an evaluation at {@code time}. */
    abstract void evaluate(long time, Results results);

    /** How far, in ms, before an evaluation the window starts; 0 when that depends on its records. */
    long reach() {
        return 0;
    }

    /** From this time on nothing held can be seen any more and the part may be {@link #reset}. */
    abstract long expiry();

    /** Whether the part equals a new one. */
    abstract boolean isNew();

    abstract void reset();

    abstract void write(StateWriter out);

    abstract void read(StateReader in);
}
