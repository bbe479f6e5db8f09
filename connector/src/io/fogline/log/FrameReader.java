package io.fogline.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;

/**
 * Reads the records between two positions of a log. Whole frames are read ahead into one array and
 * checked; records are ranges of that array, so reading one makes no object. What a getter returns
 * holds until the next call of {@link #next}, {@link #nextFrame} or {@link #nextRecord}.
 */
public final class FrameReader implements AutoCloseable {
    private static final int SMALLEST = 64 << 10;
    private static final int LARGEST = 2 << 20;

    private final Path folder;
    private final boolean skipDamage;
    private final List<Segment> segments;
    private long stop;
    private int index;
    private FileChannel channel;
    private long segmentEnd;
    private byte[] bytes = {};
    /** The position of {@code bytes[0]}; {@code bytes[0, filled)} is read. */
    private long base;
    private int filled;
    private long position;
    private long end;
    private int body;
    private int at;
    private int bodyEnd;
    private int recordsLeft;
    private int from;
    private int to;
    private int topicFrom;
    private int topicTo;
    private long skipped;

    /** Both positions are starts or ends of frames or segments, and {@code to} is committed. */
    public FrameReader(Path folder, long from, long to) throws IOException {
        this(folder, from, to, false);
    }

    /** With {@code skipDamage}, reading goes on at the segment behind damage, see {@link #skipped}. */
    public FrameReader(Path folder, long from, long to, boolean skipDamage) throws IOException {
        this.folder = folder;
        this.skipDamage = skipDamage;
        stop = to;
        segments = Segments.before(folder, to);
        position = from;
        end = from;
        start();
    }

    /** There is more to read: everything up to {@code to}, which is committed now. */
    public void extend(long to) throws IOException {
        long known = segments.isEmpty() ? -1 : segments.get(segments.size() - 1).first();
        for (Segment segment : Segments.before(folder, to)) {
            if (segment.first() > known) {
                segments.add(segment);
            }
        }
        stop = Math.max(stop, to);
        if (channel == null) {
            start();
        } else {
            segmentEnd = Segments.end(segments, index, stop);
        }
    }

    /** Finds the segment of the first frame; none is open yet. */
    private void start() throws LogGone {
        index = Segments.locate(segments, end);
        if (index < 0 && end < stop) {
            startBehind();
        }
    }

    private void startBehind() throws LogGone {
        long first = segments.isEmpty() ? stop : segments.get(0).first();
        if (!skipDamage) {
            throw new LogGone(folder, end, first);
        }
        skipped += first - end;
        end = first;
        index = 0;
    }

    /** Moves to the next record, in this frame or a later one; false at the end. */
    public boolean next() throws IOException {
        while (!nextRecord()) {
            if (!nextFrame()) {
                return false;
            }
        }
        return true;
    }

    /** Moves before the first record of the next frame; false at the end. */
    public boolean nextFrame() throws IOException {
        recordsLeft = 0;
        at = bodyEnd;
        while (end < stop) {
            try {
                enter();
                load();
                return true;
            } catch (BadFrame e) {
                skip(end, e.getMessage());
            }
        }
        return false;
    }

    /** Moves to the next record of this frame; false when there is none left. */
    public boolean nextRecord() throws IOException {
        if (recordsLeft == 0) {
            if (at != bodyEnd) {
                skip(position, "the records do not fill their frame");
            }
            return false;
        }
        int topic = at + 6;
        if (topic > bodyEnd) {
            return broken();
        }
        long length = Format.i32(bytes, at) & 0xFFFFFFFFL;
        int size = Format.u16(bytes, at + 4);
        int start = size == Format.SAME_TOPIC ? topic : topic + size;
        if (start + length >= bodyEnd || bytes[start + (int) length] != '\n') {
            return broken();
        }
        if (size != Format.SAME_TOPIC) {
            topicFrom = topic;
            topicTo = start;
        }
        if (topicTo == topicFrom) {
            return broken();
        }
        from = start;
        to = start + (int) length;
        at = to + 1;
        recordsLeft--;
        return true;
    }

    private boolean broken() throws IOException {
        skip(position, "a record cannot be read");
        return false;
    }

    /** Opens the segment that the next frame is in, and steps over its header. */
    private void enter() throws IOException, BadFrame {
        while (channel != null && end >= segmentEnd && index + 1 < segments.size()) {
            leave();
            index++;
        }
        Segment segment = segments.get(index);
        if (channel == null) {
            open(segment);
        }
        if (end == segment.first()) {
            ensure(Format.HEADER);
            int start = (int) (end - base);
            if (!Arrays.equals(bytes, start, start + Format.HEADER, Format.header(end), 0, Format.HEADER)) {
                throw new BadFrame("it does not begin with its header");
            }
            end += Format.HEADER;
        }
    }

    private void open(Segment segment) throws IOException {
        try {
            channel = FileChannel.open(segment.path(), StandardOpenOption.READ);
        } catch (NoSuchFileException e) {
            throw new LogGone(folder, end, Segments.first(folder, stop));
        }
        segmentEnd = Segments.end(segments, index, stop);
        base = end;
        filled = 0;
    }

    private void leave() throws IOException {
        channel.close();
        channel = null;
    }

    /** Reads and checks the frame at {@code end} and makes it the current one. */
    private void load() throws IOException, BadFrame {
        ensure(Format.FRAME);
        int length = Format.length(bytes, (int) (end - base), segmentEnd - end);
        ensure(Format.PREFIX + length);
        int start = (int) (end - base);
        body = start + Format.PREFIX;
        if (Format.crc(bytes, body, length) != Format.i32(bytes, start + 4)) {
            throw new BadFrame("the checksum is wrong");
        }
        position = end;
        end = position + Format.PREFIX + length;
        bodyEnd = body + length;
        at = body + Format.BODY;
        topicFrom = 0;
        topicTo = 0;
        setCount(Format.i32(bytes, body + 25));
    }

    private void setCount(int count) throws BadFrame {
        if (count < 0) {
            end = position;
            throw new BadFrame("a frame cannot have that many records");
        }
        recordsLeft = count;
    }

    /** {@code size} bytes from position {@code end} on are in the array. */
    private void ensure(int size) throws IOException, BadFrame {
        int start = (int) (end - base);
        if (start + size <= filled) {
            return;
        }
        if (end + size > segmentEnd) {
            throw new BadFrame("it ends within a frame");
        }
        makeRoom(start, size);
        while (filled < size) {
            int wanted = (int) Math.min(bytes.length - filled, segmentEnd - base - filled);
            long offset = base + filled - segments.get(index).first();
            int read = channel.read(ByteBuffer.wrap(bytes, filled, wanted), offset);
            if (read < 0) {
                throw new BadFrame("it ends within a frame");
            }
            filled += read;
        }
    }

    /** What is not used yet moves to the front of the array, which grows with what there is to read. */
    private void makeRoom(int start, int size) {
        int useful = (int) Math.max(SMALLEST, Math.min(LARGEST, segmentEnd - end));
        int room = Math.max(size, useful);
        byte[] target = room > bytes.length ? new byte[room] : bytes;
        System.arraycopy(bytes, start, target, 0, filled - start);
        bytes = target;
        filled -= start;
        base = end;
    }

    /** Goes on behind the segment that is damaged at {@code bad}, or raises that. */
    private void skip(long bad, String reason) throws IOException {
        if (!skipDamage) {
            throw new LogDamaged(segments.get(index).path(), bad, reason);
        }
        recordsLeft = 0;
        at = bodyEnd;
        skipped += segmentEnd - bad;
        end = segmentEnd;
        base = end;
        filled = 0;
    }

    /** The array that holds the current record; {@code bytes()[to()]} is a newline. */
    public byte[] bytes() {
        return bytes;
    }

    public int from() {
        return from;
    }

    public int to() {
        return to;
    }

    public int topicFrom() {
        return topicFrom;
    }

    public int topicTo() {
        return topicTo;
    }

    /** The position of the current frame. */
    public long position() {
        return position;
    }

    /** The position behind the current frame. */
    public long end() {
        return end;
    }

    /** Whether the current frame is the last one of its commit. */
    public boolean last() {
        return (bytes[body] & Format.LAST) != 0;
    }

    /** When the current frame arrived, in microseconds since the epoch. */
    public long arrival() {
        return Format.i64(bytes, body + 1);
    }

    public long source() {
        return Format.i64(bytes, body + 9);
    }

    public long epoch() {
        return Format.i64(bytes, body + 17);
    }

    /** How many bytes were left out because of damage. */
    public long skipped() {
        return skipped;
    }

    @Override
    public void close() throws IOException {
        if (channel != null) {
            leave();
        }
    }
}
