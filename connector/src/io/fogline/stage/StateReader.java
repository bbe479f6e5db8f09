package io.fogline.stage;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Reads, in the same order, what a {@link StateWriter} wrote. */
final class StateReader {
    private final ByteBuffer buffer;

    StateReader(byte[] bytes) {
        buffer = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    long getLong() {
        long rest = 0;
        int shift = 0;
        byte next;
        do {
            next = buffer.get();
            rest |= (long) (next & 0x7F) << shift;
            shift += 7;
        } while (next < 0);
        return (rest >>> 1) ^ -(rest & 1);
    }

    int getInt() {
        return Math.toIntExact(getLong());
    }

    boolean getBoolean() {
        return buffer.get() != 0;
    }

    double getDouble() {
        return buffer.getDouble();
    }

    void getDoubles(double[] into, int from, int count) {
        buffer.asDoubleBuffer().get(into, from, count);
        buffer.position(buffer.position() + 8 * count);
    }

    byte[] getBytes() {
        byte[] bytes = new byte[getInt()];
        buffer.get(bytes);
        return bytes;
    }

    String getText() {
        return getBoolean() ? new String(getBytes(), StandardCharsets.UTF_8) : null;
    }
}
