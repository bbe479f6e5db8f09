package io.fogline.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * Walks over the frames of one segment by their heads; bodies are read only to be checked. Damaged heads
 * are passed over.
 */
final class FrameWalk implements AutoCloseable {
    private static final int WINDOW = 16 << 10;
    private static final int SCAN = 1 << 20;

    private final Segment segment;
    private final FileChannel channel;
    private final long stop;
    private byte[] window = new byte[WINDOW];
    private long base;
    private int filled;
    private int head;
    private int size;
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

    /** Whether neither the header nor any of the first heads belong to a segment of that name. */
    static boolean isForeign(Segment segment) throws IOException {
        long stop = Math.min(segment.end(), segment.frames() + SCAN);
        try (FrameWalk walk = new FrameWalk(segment, segment.frames(), stop)) {
            return !segment.hasHeader() && !walk.scan(segment.frames());
        }
    }

    /** Moves to the next frame with a whole head, unless the last one ended at or behind the stop. */
    boolean next() throws IOException {
        if (end >= stop) {
            return false;
        }
        try {
            move();
        } catch (BadFrame e) {
            if (!scan(end)) {
                end = stop;
                return false;
            }
        }
        return true;
    }

    private void move() throws IOException, BadFrame {
        ensure(end, Format.HEAD);
        size = Format.size(window, (int) (end - base), end, stop - end);
        head = (int) (end - base);
        position = end;
        end = position + size;
    }

    /** Moves to the next frame and checks all of it; after {@link BadFrame} it is where it was. */
    boolean nextChecked() throws IOException, BadFrame {
        if (end >= stop) {
            return false;
        }
        long start = end;
        try {
            move();
            ensure(position, size);
            head = (int) (position - base);
            Format.check(window, head, size);
        } catch (BadFrame e) {
            end = start;
            throw e;
        }
        return true;
    }

    /** Moves to the first frame at or behind {@code from} with a whole head; its body may be damaged. */
    boolean scan(long from) throws IOException {
        byte[] bytes = new byte[(int) Math.max(Format.HEAD, Math.min(SCAN, stop - from))];
        for (long start = from; start < stop; ) {
            int read = read(bytes, (int) Math.min(bytes.length, stop - start), start);
            for (int at = 0; at + Format.HEAD <= read; at++) {
                if (bytes[at] == (byte) Format.MARKER && isHead(bytes, at, start + at)) {
                    window = bytes;
                    base = start;
                    filled = read;
                    head = at;
                    position = start + at;
                    end = position + size;
                    return true;
                }
            }
            if (read < Format.HEAD) {
                return false;
            }
            start += read - Format.HEAD + 1;
        }
        return false;
    }

    private boolean isHead(byte[] bytes, int at, long place) {
        try {
            size = Format.size(bytes, at, place, stop - place);
            return true;
        } catch (BadFrame e) {
            return false;
        }
    }

    /** As many bytes as there are from position {@code from} on. */
    private int read(byte[] into, int wanted, long from) throws IOException {
        ByteBuffer target = ByteBuffer.wrap(into, 0, wanted);
        while (target.hasRemaining()) {
            if (channel.read(target, from + target.position() - segment.first()) < 0) {
                break;
            }
        }
        return target.position();
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
        filled = read(window, window.length, from);
        if (filled < size) {
            throw new BadFrame("it ends within a frame");
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
        return (window[head + Format.FLAGS] & Format.LAST) != 0;
    }

    long source() {
        return Format.i64(window, head + Format.FLAGS + Format.SOURCE);
    }

    long epoch() {
        return Format.i64(window, head + Format.FLAGS + Format.EPOCH);
    }

    /** The number of the frame's first record. */
    long number() {
        return Format.number(window, head);
    }

    int count() {
        return Format.count(window, head);
    }

    /** The number of the first record behind the frame. */
    long nextNumber() {
        return number() + count();
    }

    @Override
    public void close() throws IOException {
        channel.close();
    }
}
