package io.fogline.decode;

import java.util.ArrayList;
import java.util.List;

/**
 * The records of one message, in objects that are used again for the next message. Holds at most
 * {@link #MAX_RECORDS}, so that a small hostile message cannot fill the memory.
 */
public final class Records {
    public static final int MAX_RECORDS = 100_000;

    private final int slots;
    private final List<Record> pool = new ArrayList<>();
    private int count;
    private long arrival;

    public Records(int slots) {
        this.slots = slots;
    }

    /** Forgets all records; {@code arrival} is when the message came, in microseconds. */
    public void clear(long arrival) {
        this.count = 0;
        this.arrival = arrival;
    }

    /** Adds an empty record. */
    public Record add() throws BadMessage {
        if (count == MAX_RECORDS) {
            throw new BadMessage("more than " + MAX_RECORDS + " records in one message");
        }
        if (count == pool.size()) {
            pool.add(new Record(slots));
        }
        Record record = pool.get(count++);
        record.clear();
        return record;
    }

    public int size() {
        return count;
    }

    public Record get(int index) {
        return pool.get(index);
    }

    /** When the message came, in microseconds since the epoch. */
    public long arrival() {
        return arrival;
    }

    /** A message may carry its own arrival time. */
    public void setArrival(long micros) {
        arrival = micros;
    }
}
