package io.fogline.log;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.zip.CRC32;

/** The layout of segments and frames, as docs/design/site-log.md has it. */
final class Format {
    static final int HEADER = 16;
    /** Length and checksum, before the body. */
    static final int PREFIX = 8;
    /** The fields of the body before the records. */
    static final int BODY = 29;
    static final int FRAME = PREFIX + BODY;
    static final int MAX_BODY = 32 << 20;
    static final int MAX_PAYLOAD = 16 << 20;
    static final int FRAME_BYTES = 1 << 20;
    static final int SAME_TOPIC = 0xFFFF;
    static final int LAST = 1;

    private static final byte[] MAGIC = {'F', 'O', 'G', 'L', 'O', 'G', 1, 0};
    private static final VarHandle SHORTS = view(short[].class);
    private static final VarHandle INTS = view(int[].class);
    private static final VarHandle LONGS = view(long[].class);

    private Format() {}

    private static VarHandle view(Class<?> type) {
        return MethodHandles.byteArrayViewVarHandle(type, ByteOrder.LITTLE_ENDIAN);
    }

    static int u16(byte[] bytes, int at) {
        return (short) SHORTS.get(bytes, at) & 0xFFFF;
    }

    static int i32(byte[] bytes, int at) {
        return (int) INTS.get(bytes, at);
    }

    static long i64(byte[] bytes, int at) {
        return (long) LONGS.get(bytes, at);
    }

    static void put16(byte[] bytes, int at, int value) {
        SHORTS.set(bytes, at, (short) value);
    }

    static void put32(byte[] bytes, int at, int value) {
        INTS.set(bytes, at, value);
    }

    static void put64(byte[] bytes, int at, long value) {
        LONGS.set(bytes, at, value);
    }

    static byte[] header(long first) {
        byte[] header = new byte[HEADER];
        System.arraycopy(MAGIC, 0, header, 0, MAGIC.length);
        put64(header, MAGIC.length, first);
        return header;
    }

    static int crc(byte[] bytes, int from, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, from, length);
        return (int) crc.getValue();
    }

    /** The length of the body that the frame at {@code at} claims; it fits into {@code room} bytes. */
    static int length(byte[] bytes, int at, long room) throws BadFrame {
        int length = i32(bytes, at);
        if (length < BODY || length > MAX_BODY || PREFIX + (long) length > room) {
            throw new BadFrame("a frame cannot have " + Integer.toUnsignedString(length) + " bytes here");
        }
        return length;
    }
}
