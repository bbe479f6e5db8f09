package io.fogline.source;

import io.fogline.decode.Record;
import java.io.Serializable;

/**
 * What all messages of a batch share, fixed when the batch is planned.
 *
 * @param arrival when the batch was planned, in microseconds
 * @param fraction share of messages to keep
 * @param lateBefore records older than this are late, in microseconds; {@link #NEVER_LATE} for none
 */
record BatchContext(long arrival, double fraction, long lateBefore) implements Serializable {
    static final long NEVER_LATE = Record.NO_TIME;
}
