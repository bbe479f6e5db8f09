package io.fogline.decode;

import java.io.Serializable;

/**
 * An asked-for column: its name, its type, the field of the record it comes from, and whether that
 * field may also be the name of the record's metric.
 */
public record Field(String name, Type type, String from, boolean metric) implements Serializable {

    /** What a column holds. The types from {@link #ERROR} on are made by the reader, not the record. */
    public enum Type {
        DOUBLE,
        LONG,
        STRING,
        BOOLEAN,
        ERROR,
        RAW,
        PAYLOAD,
        TOPIC,
        HASH,
        FRACTION,
        CLOCK,
        TIME;

        public boolean isDecoded() {
            return this.ordinal() < ERROR.ordinal();
        }
    }
}
