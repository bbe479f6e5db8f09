package io.fogline.log;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.zip.CRC32;

/** The layout of segments and frames, as docs/design/site-log.md has it. */
final class Format {
    static final int HEADER = 16;
    static final int VERSION = 2;
    /** A frame up to its records. */
    static final int HEAD = 61;
    /** Marker and checksums of a head, before what they guard. */
    static final int SUMS = 12;
    /** Where a head has its flags; arrival, source and epoch follow. */
    static final int FLAGS = 36;
    static final int ARRIVAL = 1;
    static final int SOURCE = 9;
    static final int EPOCH = 17;
    static final int MAX_BODY = 32 << 20;
    static final int MAX_PAYLOAD = 16 << 20;
    static final int FRAME_BYTES = 64 << 10;
    static final int SAME_TOPIC = 0xFFFF;
    static final int LAST = 1;
    static final int MARKER = 0xFA5246F5;
    static final long UNKNOWN = -1;
    private static final int OLD = 1;
    /** Where what the checksum of a frame covers begins: behind it. */
    private static final int CHECKED = 8;

    private static final byte[] MAGIC = {'F', 'O', 'G', 'L', 'O', 'G'};
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
        return header(first, VERSION);
    }

    private static byte[] header(long first, int version) {
        byte[] header = new byte[HEADER];
        System.arraycopy(MAGIC, 0, header, 0, MAGIC.length);
        put16(header, MAGIC.length, version);
        put64(header, MAGIC.length + 2, first);
        return header;
    }

    /** Whether the log was written by a version whose frames had no numbers. */
    static boolean isOld(byte[] header, long first) {
        return Arrays.equals(header, header(first, OLD));
    }

    static int crc(byte[] bytes, int from, int length) {
        CRC32 crc = new CRC32();
        crc.update(bytes, from, length);
        return (int) crc.getValue();
    }

    /**
     * The length of the frame whose head is at {@code at}, which is the byte at {@code position}; it fits
     * into {@code room} bytes. The checksum of the head is right.
     */
    static int size(byte[] bytes, int at, long position, long room) throws BadFrame {
        if (i32(bytes, at) != MARKER || crc(bytes, at + SUMS, HEAD - SUMS) != i32(bytes, at + 8)) {
            throw new BadFrame("the head of a frame is damaged");
        }
        if (i64(bytes, at + 16) != position) {
            throw new BadFrame("a frame is not where it was written");
        }
        int length = i32(bytes, at + 12);
        if (length < 0 || length > MAX_BODY || HEAD + (long) length > room) {
            throw new BadFrame("a frame cannot have " + Integer.toUnsignedString(length) + " bytes here");
        }
        return HEAD + length;
    }

    /** All of the frame is as it was written. */
    static void check(byte[] bytes, int at, int size) throws BadFrame {
        if (crc(bytes, at + CHECKED, size - CHECKED) != i32(bytes, at + 4)) {
            throw new BadFrame("the checksum is wrong");
        }
    }

    /** The number of a frame's first record. */
    static long number(byte[] bytes, int at) {
        return i64(bytes, at + 24);
    }

    static int count(byte[] bytes, int at) {
        return i32(bytes, at + 32);
    }
}
