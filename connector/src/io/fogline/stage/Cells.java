package io.fogline.stage;

import java.util.Arrays;

/** A double-ended queue of cells with ascending keys; a cell may be null. */
class Cells<T> {
    private static final int SMALL = 8;

    private long[] keys = new long[SMALL];
    private Object[] cells = new Object[SMALL];
    private int head;
    private int tail;

    int size() {
        return tail - head;
    }

    long key(int position) {
        return keys[head + position];
    }

    @SuppressWarnings("unchecked")
    T cell(int position) {
        return (T) cells[head + position];
    }

    void set(int position, T cell) {
        cells[head + position] = cell;
    }

    void push(long key, T cell) {
        if (tail == keys.length) {
            makeRoom();
        }
        keys[tail] = key;
        cells[tail++] = cell;
    }

    private void makeRoom() {
        int size = size();
        int room = size * 2 > keys.length ? keys.length * 2 : keys.length;
        long[] movedKeys = room == keys.length ? keys : new long[room];
        Object[] movedCells = room == cells.length ? cells : new Object[room];
        System.arraycopy(keys, head, movedKeys, 0, size);
        System.arraycopy(cells, head, movedCells, 0, size);
        Arrays.fill(movedCells, size, room, null);
        keys = movedKeys;
        cells = movedCells;
        head = 0;
        tail = size;
    }

    /** Removes that many cells from the front. */
    void drop(int count) {
        Arrays.fill(cells, head, head + count, null);
        head += count;
    }

    /** The smallest key not below {@code low}, or {@link Long#MAX_VALUE}. */
    long firstFrom(long low) {
        for (int i = head; i < tail; i++) {
            if (keys[i] >= low) {
                return keys[i];
            }
        }
        return Long.MAX_VALUE;
    }

    void clear() {
        drop(size());
        head = 0;
        tail = 0;
    }

    /** How a cell is written; null cells are handled here. */
    interface Write<T> {
        void write(T cell, StateWriter out);
    }

    /** How a cell is read. */
    interface Read<T> {
        T read(StateReader in);
    }

    void write(StateWriter out, Write<T> write) {
        out.putLong(size());
        long before = 0;
        for (int i = 0; i < size(); i++) {
            out.putLong(key(i) - before);
            before = key(i);
            out.putBoolean(cell(i) != null);
            if (cell(i) != null) {
                write.write(cell(i), out);
            }
        }
    }

    void read(StateReader in, Read<T> read) {
        clear();
        long key = 0;
        for (int left = in.getInt(); left > 0; left--) {
            key += in.getLong();
            push(key, in.getBoolean() ? read.read(in) : null);
        }
    }
}
