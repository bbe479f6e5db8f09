package io.fogline.decode;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The asked-for names of one level of a record, found by their bytes without making a string. An
 * entry has a slot for its value (or -1) and the names asked for inside it (or null).
 */
public final class FieldTree implements Serializable {
    private byte[][] names = new byte[4][];
    private FieldTree[] children = new FieldTree[4];
    private int[] slots = new int[4];
    private int count;
    private int[] table = new int[16];

    public FieldTree() {
        Arrays.fill(table, -1);
    }

    /** The entry of this name, or -1. */
    public int find(byte[] bytes, int offset, int length) {
        int mask = table.length - 1;
        int at = hash(bytes, offset, length) & mask;
        for (int entry = table[at]; entry >= 0; at = (at + 1) & mask, entry = table[at]) {
            byte[] name = names[entry];
            if (name.length == length && Arrays.equals(bytes, offset, offset + length, name, 0, length)) {
                return entry;
            }
        }
        return -1;
    }

    public int find(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        return find(bytes, 0, bytes.length);
    }

    public int slot(int entry) {
        return slots[entry];
    }

    public FieldTree child(int entry) {
        return children[entry];
    }

    /** The slot of a name at this level, or -1. */
    public int slotOf(byte[] bytes, int offset, int length) {
        int entry = find(bytes, offset, length);
        return entry < 0 ? -1 : slots[entry];
    }

    /** Forgets what a record holds under the names inside an entry: a later value replaces all of it. */
    void forgetInside(int entry, Record record) {
        FieldTree inside = children[entry];
        for (int i = 0; inside != null && i < inside.count; i++) {
            if (inside.slots[i] >= 0) {
                record.set(inside.slots[i], Record.ABSENT);
            }
            inside.forgetInside(i, record);
        }
    }

    void setSlot(int entry, int slot) {
        slots[entry] = slot;
    }

    FieldTree childOf(int entry) {
        if (children[entry] == null) {
            children[entry] = new FieldTree();
        }
        return children[entry];
    }

    /** The entry of this name, made where it is not there yet. */
    int entry(String name) {
        int found = find(name);
        if (found >= 0) {
            return found;
        }
        int entry = count++;
        if (entry == slots.length) {
            slots = Arrays.copyOf(slots, 2 * entry);
            names = Arrays.copyOf(names, 2 * entry);
            children = Arrays.copyOf(children, 2 * entry);
        }
        slots[entry] = -1;
        names[entry] = name.getBytes(StandardCharsets.UTF_8);
        rebuild();
        return entry;
    }

    private void rebuild() {
        int size = Integer.highestOneBit(Math.max(4, count)) * 4;
        table = new int[size];
        Arrays.fill(table, -1);
        for (int entry = 0; entry < count; entry++) {
            byte[] name = names[entry];
            int at = hash(name, 0, name.length) & (size - 1);
            while (table[at] >= 0) {
                at = (at + 1) & (size - 1);
            }
            table[at] = entry;
        }
    }

    private static int hash(byte[] bytes, int offset, int length) {
        if (length == 0) {
            return 0;
        }
        int hash = length * 31 + bytes[offset] * 7 + bytes[offset + length - 1] * 131 + bytes[offset + length / 2] * 17;
        return hash ^ (hash >>> 5);
    }
}
