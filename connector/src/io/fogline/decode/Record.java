package io.fogline.decode;

import java.util.Arrays;

/**
 * One record while it passes through the reader: a value for every slot of the {@link Layout}.
 * Texts and numbers stay bytes until a column asks for them, so what nobody asks for is never
 * converted. A later value for a slot replaces an earlier one.
 */
public final class Record {
    public static final byte ABSENT = 0;
    public static final byte NULL = 1;
    public static final byte FALSE = 2;
    public static final byte TRUE = 3;
    /** A number as text. */
    public static final byte NUMBER = 4;
    /** A string, UTF-8. */
    public static final byte TEXT = 5;
    public static final byte LONG = 6;
    public static final byte DOUBLE = 7;
    /** An object, a list or bytes: nothing a column can hold. */
    public static final byte OTHER = 8;

    public static final long NO_TIME = Long.MIN_VALUE;

    private final byte[] kinds;
    private final byte[][] sources;
    private final int[] offsets;
    private final int[] lengths;
    private final long[] bits;
    private byte[] scratch = new byte[64];
    private int used;
    private long ownTime;

    Record(int slots) {
        kinds = new byte[slots];
        sources = new byte[slots][];
        offsets = new int[slots];
        lengths = new int[slots];
        bits = new long[slots];
    }

    void clear() {
        Arrays.fill(kinds, ABSENT);
        used = 0;
        ownTime = NO_TIME;
    }

    /** Forgets the values but keeps the texts that other records may point to. */
    void forget() {
        Arrays.fill(kinds, ABSENT);
    }

    /** Sets a value that needs no content: {@link #NULL}, {@link #TRUE}, {@link #FALSE}, {@link #OTHER}. */
    public void set(int slot, byte kind) {
        kinds[slot] = kind;
    }

    /** Sets a {@link #NUMBER} or {@link #TEXT} that lies in {@code source} and is not copied. */
    public void set(int slot, byte kind, byte[] source, int offset, int length) {
        kinds[slot] = kind;
        if (sources[slot] != source) { // mostly it is; the collector wants to know of every store
            sources[slot] = source;
        }
        offsets[slot] = offset;
        lengths[slot] = length;
    }

    public void setLong(int slot, long value) {
        kinds[slot] = LONG;
        bits[slot] = value;
    }

    public void setDouble(int slot, double value) {
        kinds[slot] = DOUBLE;
        bits[slot] = Double.doubleToRawLongBits(value);
    }

    /** Copies the value of another record's slot (the other record must outlive this one's use). */
    public void copy(int slot, Record from, int fromSlot) {
        kinds[slot] = from.kinds[fromSlot];
        sources[slot] = from.sources[fromSlot];
        offsets[slot] = from.offsets[fromSlot];
        lengths[slot] = from.lengths[fromSlot];
        bits[slot] = from.bits[fromSlot];
    }

    /**
     * Room for {@code length} bytes that live as long as this record; they start at
     * {@link #scratchUsed} of the returned array until {@link #scratchTake} claims them.
     */
    byte[] scratch(int length) {
        if (used + length > scratch.length) {
            scratch = new byte[Math.max(2 * scratch.length, length)];
            used = 0;
        }
        return scratch;
    }

    int scratchUsed() {
        return used;
    }

    void scratchTake(int length) {
        used += length;
    }

    public byte kind(int slot) {
        return kinds[slot];
    }

    public byte[] source(int slot) {
        return sources[slot];
    }

    public int offset(int slot) {
        return offsets[slot];
    }

    public int length(int slot) {
        return lengths[slot];
    }

    public long longValue(int slot) {
        return bits[slot];
    }

    public double doubleValue(int slot) {
        return Double.longBitsToDouble(bits[slot]);
    }

    /** Whether the slot holds a value, be it one no column can show. */
    public boolean has(int slot) {
        return kinds[slot] > NULL;
    }

    /** The time the format itself gives the record, in microseconds, or {@link #NO_TIME}. */
    public long ownTime() {
        return ownTime;
    }

    public void setOwnTime(long micros) {
        ownTime = micros;
    }
}
