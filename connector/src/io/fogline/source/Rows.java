package io.fogline.source;

import io.fogline.decode.Field;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.catalyst.expressions.codegen.UnsafeRowWriter;

/**
 * Writes Spark rows, in Spark's own memory layout and always into the same row. The written columns
 * are a choice of the asked-for ones, because Spark may need fewer than {@code fields} lists.
 */
final class Rows {
    /** The event time of the end row: 9999-12-31T00:00:00Z. */
    static final long END_TIME = 253_402_214_400_000_000L;

    private final Columns columns;
    private final Field.Type[] types;
    private final int[] sources;
    private final double fraction;
    private final UnsafeRowWriter writer;
    private byte[] topic;
    private byte[] payload;
    private int payloadFrom;
    private int payloadTo;

    /** {@code sources}: for every column of the row, its place in {@code fields}. */
    Rows(Columns columns, List<Field> fields, int[] sources, double fraction) {
        this.columns = columns;
        this.sources = sources;
        this.fraction = fraction;
        this.types = new Field.Type[sources.length];
        for (int i = 0; i < sources.length; i++) {
            types[i] = fields.get(sources[i]).type();
        }
        this.writer = new UnsafeRowWriter(sources.length, 32 * sources.length);
    }

    /** Whether a column of this type is written, so that its making can be saved. */
    boolean writes(Field.Type type) {
        for (Field.Type written : types) {
            if (written == type) {
                return true;
            }
        }
        return false;
    }

    /** The message that the following rows come from; it must not change before they are written. */
    void message(byte[] topic, byte[] bytes, int from, int to) {
        this.topic = topic;
        this.payload = bytes;
        this.payloadFrom = from;
        this.payloadTo = to;
    }

    /** The row of the record that is loaded in the columns. */
    UnsafeRow record(long hash, byte[] raw) {
        begin();
        for (int i = 0; i < types.length; i++) {
            int column = sources[i];
            switch (types[i]) {
                case DOUBLE:
                    if (columns.isNull(column)) {
                        writer.setNullAt(i);
                    } else {
                        writer.write(i, columns.doubleAt(column));
                    }
                    break;
                case LONG:
                    if (columns.isNull(column)) {
                        writer.setNullAt(i);
                    } else {
                        writer.write(i, columns.longAt(column));
                    }
                    break;
                case BOOLEAN:
                    if (columns.isNull(column)) {
                        writer.setNullAt(i);
                    } else {
                        writer.write(i, columns.booleanAt(column));
                    }
                    break;
                case STRING:
                    if (columns.isNull(column)) {
                        writer.setNullAt(i);
                    } else {
                        writer.write(i, columns.textAt(column), columns.offsetAt(column), columns.lengthAt(column));
                    }
                    break;
                case TIME:
                    writer.write(i, columns.time());
                    break;
                case ERROR:
                    writer.setNullAt(i);
                    break;
                default:
                    special(i, hash, raw);
            }
        }
        return writer.getRow();
    }

    /** The row of a bad message: the reason, nulls, and what does not come from its content. */
    UnsafeRow bad(String reason, long hash, byte[] raw) {
        begin();
        for (int i = 0; i < types.length; i++) {
            if (types[i] == Field.Type.ERROR) {
                writer.write(i, reason.getBytes(StandardCharsets.UTF_8));
            } else {
                special(i, hash, raw);
            }
        }
        return writer.getRow();
    }

    /** A row that tells a time and nothing else. */
    UnsafeRow time(long micros) {
        begin();
        for (int i = 0; i < types.length; i++) {
            if (types[i] == Field.Type.TIME) {
                writer.write(i, micros);
            } else if (types[i] == Field.Type.CLOCK) {
                writer.write(i, true);
            } else {
                writer.setNullAt(i);
            }
        }
        return writer.getRow();
    }

    private void begin() {
        writer.reset();
        writer.zeroOutNullBytes();
    }

    private void special(int ordinal, long hash, byte[] raw) {
        switch (types[ordinal]) {
            case RAW:
                writer.write(ordinal, raw);
                break;
            case PAYLOAD:
                writer.write(ordinal, payload, payloadFrom, payloadTo - payloadFrom);
                break;
            case TOPIC:
                if (topic == null) {
                    writer.setNullAt(ordinal);
                } else {
                    writer.write(ordinal, topic);
                }
                break;
            case HASH:
                writer.write(ordinal, hash);
                break;
            case FRACTION:
                writer.write(ordinal, fraction);
                break;
            default:
                writer.setNullAt(ordinal);
        }
    }
}
