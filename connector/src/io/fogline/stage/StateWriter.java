package io.fogline.stage;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Writes state as compact bytes; {@link StateReader} reads back exactly what was written. */
final class StateWriter {
    private ByteBuffer buffer = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);

    private void room(int bytes) {
        if (buffer.remaining() < bytes) {
            int size = Math.max(buffer.capacity() * 2, buffer.position() + bytes);
            byte[] grown = Arrays.copyOf(buffer.array(), size);
            int at = buffer.position();
            buffer = ByteBuffer.wrap(grown).order(ByteOrder.LITTLE_ENDIAN);
            buffer.position(at);
        }
    }

    /** Small magnitudes of either sign take few bytes. */
    void putLong(long value) {
        room(10);
        long rest = (value << 1) ^ (value >> 63);
        while ((rest & ~0x7FL) != 0) {
            buffer.put((byte) (rest | 0x80));
            rest >>>= 7;
        }
        buffer.put((byte) rest);
    }

    void putBoolean(boolean value) {
        room(1);
        buffer.put((byte) (value ? 1 : 0));
    }

    void putDouble(double value) {
        room(8);
        buffer.putDouble(value);
    }

    void putDoubles(double[] values, int from, int count) {
        room(8 * count);
        buffer.asDoubleBuffer().put(values, from, count);
        buffer.position(buffer.position() + 8 * count);
    }

    void putBytes(byte[] bytes) {
        putLong(bytes.length);
        room(bytes.length);
        buffer.put(bytes);
    }

    void putText(String text) {
        putBoolean(text != null);
        if (text != null) {
            putBytes(text.getBytes(StandardCharsets.UTF_8));
        }
    }

    byte[] toBytes() {
        return Arrays.copyOf(buffer.array(), buffer.position());
    }
}
