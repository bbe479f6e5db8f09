package io.fogline.results;

import java.io.BufferedInputStream;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A run, a result at a time. Each is {@code i64} end, {@code i32} length of insight, key and record, then
 * the three of them.
 */
final class RunReader implements Closeable, Comparable<RunReader> {
    private static final int BUFFER = 1 << 16;

    private final DataInputStream in;
    private long end;
    private int keyAt;
    private int recordAt;
    private int length;
    private byte[] text = new byte[1024];

    RunReader(Run run) throws IOException {
        in = new DataInputStream(new BufferedInputStream(run.open(), BUFFER));
    }

    /** Whether there is another result; it is then the current one. */
    boolean next() throws IOException {
        try {
            end = in.readLong();
        } catch (EOFException e) {
            return false;
        }
        keyAt = in.readInt();
        recordAt = keyAt + in.readInt();
        length = recordAt + in.readInt();
        if (length > text.length) {
            text = new byte[Math.max(length, 2 * text.length)];
        }
        in.readFully(text, 0, length);
        return true;
    }

    /** The current record. */
    ByteBuffer text() {
        return ByteBuffer.wrap(text, recordAt, length - recordAt);
    }

    /** By the current results: end, insight, key, record. */
    @Override
    public int compareTo(RunReader other) {
        int order = Long.compare(end, other.end);
        if (order == 0) {
            order = Arrays.compareUnsigned(text, 0, keyAt, other.text, 0, other.keyAt);
        }
        if (order == 0) {
            order = Arrays.compareUnsigned(text, keyAt, recordAt, other.text, other.keyAt, other.recordAt);
        }
        return order != 0
                ? order
                : Arrays.compareUnsigned(text, recordAt, length, other.text, other.recordAt, other.length);
    }

    @Override
    public void close() throws IOException {
        in.close();
    }
}
