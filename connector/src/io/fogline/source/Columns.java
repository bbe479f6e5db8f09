package io.fogline.source;

import io.fogline.decode.Field;
import io.fogline.decode.Layout;
import io.fogline.decode.Numbers;
import io.fogline.decode.Record;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The typed values of the current record, one per asked-for column, converted when first looked at:
 * a column that only the filter needs is converted once, and a row the filter drops costs no more
 * than that. What cannot be read as the column's type is null.
 */
final class Columns {
    private static final byte[] TRUE = "true".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] FALSE = "false".getBytes(StandardCharsets.US_ASCII);

    private final Layout layout;
    private final Field.Type[] types;
    /** The turn of the record that a column was last looked at for; negative where it has no value. */
    private final long[] looked;
    private final long[] bits;
    private final byte[][] texts;
    private final int[] offsets;
    private final int[] lengths;
    private Record record;
    private long turn;
    private long time;

    Columns(Layout layout, List<Field> fields) {
        this.layout = layout;
        int count = fields.size();
        types = fields.stream().map(Field::type).toArray(Field.Type[]::new);
        looked = new long[count];
        bits = new long[count];
        texts = new byte[count][];
        offsets = new int[count];
        lengths = new int[count];
    }

    void load(Record record, long time) {
        if (this.record != record) {
            this.record = record;
        }
        this.time = time;
        turn++;
    }

    /** The event time of the record, in microseconds. */
    long time() {
        return time;
    }

    boolean isNull(int column) {
        long last = looked[column];
        if (last == turn) {
            return false;
        }
        if (last == -turn) {
            return true;
        }
        int slot = layout.slot(record, column);
        boolean present = slot >= 0 && convert(column, slot);
        looked[column] = present ? turn : -turn;
        return !present;
    }

    /** The value of a column that is not null; the same holds for the other getters. */
    double doubleAt(int column) {
        return Double.longBitsToDouble(bits[column]);
    }

    long longAt(int column) {
        return bits[column];
    }

    boolean booleanAt(int column) {
        return bits[column] != 0;
    }

    byte[] textAt(int column) {
        return texts[column];
    }

    int offsetAt(int column) {
        return offsets[column];
    }

    int lengthAt(int column) {
        return lengths[column];
    }

    private boolean convert(int column, int slot) {
        switch (types[column]) {
            case DOUBLE:
                double number = number(slot);
                bits[column] = Double.doubleToRawLongBits(number);
                return Math.abs(number) <= Double.MAX_VALUE;
            case LONG:
                return convertLong(column, slot);
            case BOOLEAN:
                return convertBoolean(column, slot);
            case STRING:
                return convertText(column, slot);
            default:
                throw new IllegalStateException("column " + column + " is not decoded");
        }
    }

    /** The number in a slot, NaN where there is none. */
    private double number(int slot) {
        switch (record.kind(slot)) {
            case Record.NUMBER:
            case Record.TEXT:
                return Numbers.parse(record.source(slot), record.offset(slot), record.length(slot));
            case Record.LONG:
                return record.longValue(slot);
            case Record.DOUBLE:
                return record.doubleValue(slot);
            case Record.TRUE:
                return 1;
            case Record.FALSE:
                return 0;
            default:
                return Double.NaN;
        }
    }

    private boolean convertLong(int column, int slot) {
        byte kind = record.kind(slot);
        if (kind == Record.LONG) {
            bits[column] = record.longValue(slot);
            return true;
        }
        boolean text = kind == Record.NUMBER || kind == Record.TEXT;
        if (text && Numbers.isLong(record.source(slot), record.offset(slot), record.length(slot))) {
            bits[column] = Numbers.toLong(record.source(slot), record.offset(slot), record.length(slot));
            return true;
        }
        double number = number(slot);
        bits[column] = (long) number;
        return Numbers.isLong(number);
    }

    private boolean convertBoolean(int column, int slot) {
        if (record.kind(slot) == Record.TEXT && isWord(slot, TRUE)) {
            bits[column] = 1;
            return true;
        }
        if (record.kind(slot) == Record.TEXT && isWord(slot, FALSE)) {
            bits[column] = 0;
            return true;
        }
        double number = number(slot);
        bits[column] = number == 1 ? 1 : 0;
        return number == 0 || number == 1;
    }

    private boolean isWord(int slot, byte[] word) {
        if (record.length(slot) != word.length) {
            return false;
        }
        for (int i = 0; i < word.length; i++) {
            if ((record.source(slot)[record.offset(slot) + i] | 0x20) != word[i]) {
                return false;
            }
        }
        return true;
    }

    private boolean convertText(int column, int slot) {
        switch (record.kind(slot)) {
            case Record.NUMBER:
            case Record.TEXT:
                return setText(column, record.source(slot), record.offset(slot), record.length(slot));
            case Record.LONG:
                return setText(column, Long.toString(record.longValue(slot)));
            case Record.DOUBLE:
                return setText(column, Double.toString(record.doubleValue(slot)));
            case Record.TRUE:
                return setText(column, TRUE, 0, TRUE.length);
            case Record.FALSE:
                return setText(column, FALSE, 0, FALSE.length);
            default:
                return false;
        }
    }

    private boolean setText(int column, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        return setText(column, bytes, 0, bytes.length);
    }

    private boolean setText(int column, byte[] bytes, int offset, int length) {
        texts[column] = bytes;
        offsets[column] = offset;
        lengths[column] = length;
        return true;
    }
}
