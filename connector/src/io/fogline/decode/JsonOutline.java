package io.fogline.decode;

import java.util.Arrays;

/**
 * The outline of a flat JSON object: its bytes between the values. Devices send the same outline again
 * and again, so a message is first read along the last one: names and punctuation are compared eight
 * bytes at a time, and only values are looked at. What it accepts is exactly what {@link JsonScanner}
 * would accept with the same values; whatever is unusual (another outline, escapes, exponents, nested
 * values, text beyond ASCII) it leaves to that.
 */
final class JsonOutline {
    private static final int MAX_MEMBERS = 64;
    private static final int MAX_BYTES = 4096;
    /** So many messages in a row that do not fit, and so many are then not tried. */
    private static final int PATIENCE = 16;
    private static final int PAUSE = 1024;

    private final int[] leads = new int[MAX_MEMBERS + 1];
    private final int[] lengths = new int[MAX_MEMBERS + 1];
    private final int[] slots = new int[MAX_MEMBERS];
    /** The first and the last eight bytes of a lead of 8 to 16. */
    private final long[] firsts = new long[MAX_MEMBERS + 1];
    private final long[] lasts = new long[MAX_MEMBERS + 1];
    private byte[] text = new byte[256];
    private int used;
    /** Values in the outline; the last lead, behind them all, closes the object. 0: no outline. */
    private int members;
    private int misses;
    private int pause;

    /**
     * Reads a message that ends at {@code to} or before into the record. Returns where it ends, or -1 where
     * it must be decoded in the general way, from nothing.
     */
    int read(byte[] bytes, int from, int to, Record record) {
        if (members == 0 || pause > 0) {
            return -1;
        }
        int at = from;
        for (int member = 0; member < members; member++) {
            int value = behindLead(bytes, at, to, member);
            at = value < 0 ? -1 : value(bytes, value, record, slots[member]);
            if (at < 0) {
                return -1;
            }
        }
        int end = behindLead(bytes, at, to, members);
        if (end >= 0) {
            misses = 0;
        }
        return end;
    }

    private int behindLead(byte[] bytes, int at, int to, int member) {
        int length = lengths[member];
        if (at + length > to) {
            return -1;
        }
        if (length < 8 || length > 16) {
            return Words.equal(bytes, at, text, leads[member], length) ? at + length : -1;
        }
        boolean same = Words.word(bytes, at) == firsts[member] && Words.word(bytes, at + length - 8) == lasts[member];
        return same ? at + length : -1;
    }

    /** The end of the value; -1 where it is not a plain one. */
    private static int value(byte[] bytes, int from, Record record, int slot) {
        int c = bytes[from];
        if (c == '"') {
            int end = Words.plainEnd(bytes, from + 1);
            if (end >= 0 && slot >= 0) {
                record.set(slot, Record.TEXT, bytes, from + 1, end - from - 1);
            }
            return end < 0 ? -1 : end + 1;
        }
        int end = Words.numberEnd(bytes, from);
        if (end >= 0 && slot >= 0) {
            record.set(slot, Record.NUMBER, bytes, from, end - from);
        }
        return end;
    }

    /** Takes over the outline of a message that was found to be valid. */
    void learn(byte[] bytes, int from, int to, FieldTree root, JsonScanner scanner) throws BadMessage {
        if (pause > 0) {
            pause--;
            return;
        }
        if (++misses > PATIENCE) {
            misses = 0;
            pause = PAUSE;
        }
        members = 0;
        used = 0;
        scanner.reset(bytes, from, to);
        scanner.expect('{');
        int lead = from;
        int count = 0;
        while (scanner.peek() != '}') {
            scanner.name();
            int entry = JsonText.find(scanner, root);
            int c = scanner.peek();
            boolean plain = c == '"' || c == '-' || c >= '0' && c <= '9';
            if (!plain || count == MAX_MEMBERS || !lead(bytes, lead, scanner.position(), count)) {
                return;
            }
            slots[count++] = entry < 0 ? -1 : root.slot(entry);
            scanner.skip(1);
            lead = scanner.position();
            if (scanner.peek() == ',') {
                scanner.take();
            }
        }
        members = lead(bytes, lead, to, count) ? count : 0;
    }

    private boolean lead(byte[] bytes, int from, int to, int member) {
        int length = to - from;
        if (used + length > MAX_BYTES) {
            return false;
        }
        if (used + length > text.length) {
            text = Arrays.copyOf(text, MAX_BYTES);
        }
        System.arraycopy(bytes, from, text, used, length);
        leads[member] = used;
        lengths[member] = length;
        if (length >= 8) {
            firsts[member] = Words.word(text, used);
            lasts[member] = Words.word(text, used + length - 8);
        }
        used += length;
        return true;
    }
}
