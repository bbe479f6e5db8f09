package io.fogline.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/** Walks over the frames of one segment by their heads; bodies are read only to be checked. */
final class FrameWalk implements AutoCloseable {
    private static final int WINDOW = 16 << 10;

    private final Segment segment;
    private final FileChannel channel;
    private final long stop;
    private byte[] window = new byte[WINDOW];
    private long base;
    private int filled;
    private int head;
    private int length;
    private long position;
    private long end;

    /** From the frame at {@code start} to {@code stop}, both positions in this segment. */
    FrameWalk(Segment segment, long start, long stop) throws IOException {
        this.segment = segment;
        this.stop = stop;
        channel = FileChannel.open(segment.path(), StandardOpenOption.READ);
        position = start;
        end = start;
        base = start;
    }

    /** Moves to the next frame, unless the last one ended at or behind the stop. */
    boolean next() throws IOException, BadFrame {
        if (end >= stop) {
            return false;
        }
        ensure(end, Format.FRAME);
        length = Format.length(window, (int) (end - base), stop - end);
        head = (int) (end - base);
        position = end;
        end = position + Format.PREFIX + length;
        return true;
    }

    /** Moves to the next frame as {@link #next} does and reads its body, too. */
    boolean nextChecked() throws IOException, BadFrame {
        long start = end;
        if (!next()) {
            return false;
        }
        try {
            ensure(position, Format.PREFIX + length);
            head = (int) (position - base);
            if (Format.crc(window, head + Format.PREFIX, length) != Format.i32(window, head + 4)) {
                throw new BadFrame("the checksum is wrong");
            }
        } catch (BadFrame e) {
            end = start;
            throw e;
        }
        return true;
    }

    /** The bytes {@code [from, from + size)} are in the window. */
    private void ensure(long from, int size) throws IOException, BadFrame {
        if (from >= base && from + size <= base + filled) {
            return;
        }
        if (size > window.length) {
            window = Arrays.copyOf(window, size);
        }
        base = from;
        filled = 0;
        ByteBuffer target = ByteBuffer.wrap(window);
        while (filled < size) {
            int read = channel.read(target, base + filled - segment.first());
            if (read < 0) {
                throw new BadFrame("it ends within a frame");
            }
            filled += read;
        }
    }

    long position() {
        return position;
    }

    /** Where the frame ends; after a {@link BadFrame}, where the bad one begins. */
    long end() {
        return end;
    }

    boolean last() {
        return (window[head + 8] & Format.LAST) != 0;
    }

    long source() {
        return Format.i64(window, head + 17);
    }

    long epoch() {
        return Format.i64(window, head + 25);
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
