package io.fogline.log;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

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
    /** The number of the record that follows, -1 when it is not known. */
    private long number = Format.UNKNOWN;
    private byte[] bytes = {};
    /** The position of {@code bytes[0]}; {@code bytes[0, filled)} is read. */
    private long base;
    private int filled;
    private long position;
    private long end;
    private int head;
    private int at;
    private int bodyEnd;
    private int recordsLeft;
    private int from;
    private int to;
    private int topicFrom;
    private int topicTo;
    private long skipped;
    private long lost;
    /** Where damage was repaired while it was read. */
    private final Set<Long> repaired = new HashSet<>();

    /** Both positions are starts or ends of frames or segments, and {@code to} is committed. */
    public FrameReader(Path folder, long from, long to) throws IOException {
        this(folder, from, to, false);
    }

    /**
     * With {@code skipDamage}, damage is noted, and unless it is repaired reading goes on at the next frame:
     * see {@link #skipped} and {@link #lost}.
     */
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
    private void start() throws IOException {
        index = Segments.locate(segments, end);
        if (index < 0 && end < stop && end < Removed.load(folder).position()) {
            passRemoved(segments.isEmpty() ? stop : segments.get(0).first());
        }
    }

    private void passRemoved(long first) throws LogGone {
        if (!skipDamage) {
            throw new LogGone(folder, end, first);
        }
        end = first;
        index = Segments.locate(segments, end);
        number = Format.UNKNOWN;
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
                if (enter()) {
                    load();
                    return true;
                }
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

    /** Opens the segment that the next frame is in, and steps over its header; false if it was removed. */
    private boolean enter() throws IOException, BadFrame {
        while (channel != null && end >= segmentEnd && index + 1 < segments.size()) {
            leave();
            index++;
        }
        if (index < 0) {
            throw new BadFrame("its segment is missing");
        }
        Segment segment = segments.get(index);
        if (channel == null && !open(segment)) {
            return false;
        }
        if (end == segment.first()) {
            ensure(Format.HEADER);
            int start = (int) (end - base);
            if (!Arrays.equals(bytes, start, start + Format.HEADER, Format.header(end), 0, Format.HEADER)) {
                throw new BadFrame("it does not begin with its header");
            }
            end += Format.HEADER;
        }
        return true;
    }

    private boolean open(Segment segment) throws IOException, BadFrame {
        try {
            channel = FileChannel.open(segment.path(), StandardOpenOption.READ);
        } catch (NoSuchFileException e) {
            if (end >= Removed.load(folder).position()) {
                throw new BadFrame("its segment is missing");
            }
            passRemoved(Math.min(Segments.first(folder, stop), stop));
            return false;
        }
        segmentEnd = Segments.end(segments, index, stop);
        base = end;
        filled = 0;
        return true;
    }

    private void leave() throws IOException {
        channel.close();
        channel = null;
    }

    /** Reads and checks the frame at {@code end} and makes it the current one. */
    private void load() throws IOException, BadFrame {
        ensure(Format.HEAD);
        int size = Format.size(bytes, (int) (end - base), end, segmentEnd - end);
        ensure(size);
        head = (int) (end - base);
        Format.check(bytes, head, size);
        int count = Format.count(bytes, head);
        if (count < 0) {
            throw new BadFrame("a frame cannot have that many records");
        }
        position = end;
        end = position + size;
        number = Format.number(bytes, head) + count;
        bodyEnd = head + size;
        at = head + Format.HEAD;
        topicFrom = 0;
        topicTo = 0;
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

    /** Goes on behind the damage at {@code bad}, or there if it is repaired, or raises it. */
    private void skip(long bad, String reason) throws IOException {
        if (!skipDamage) {
            Path file = index < 0 ? folder : segments.get(index).path();
            throw new LogDamaged(file, bad, reason);
        }
        recordsLeft = 0;
        at = bodyEnd;
        end = behind(bad, reason);
        close();
        index = Segments.locate(segments, end);
        base = end;
        filled = 0;
    }

    private long behind(long bad, String reason) throws IOException {
        DamageNotes notes = new DamageNotes(folder);
        long known = notes.endOfKnown(bad);
        if (known >= 0) {
            number = Format.UNKNOWN;
            return known;
        }
        Gap gap;
        try (Committed committed = new Committed(folder)) {
            gap = Gap.measure(folder, bad, committed.end(), bad == end ? number : Format.UNKNOWN);
        }
        if (notes.settle(gap, reason, !repaired.add(bad))) {
            return bad;
        }
        skipped += gap.end() - bad;
        lost += Math.max(gap.records(), 0);
        number = gap.number();
        return gap.end();
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
        return (bytes[head + Format.FLAGS] & Format.LAST) != 0;
    }

    /** When the current frame arrived, in microseconds since the epoch. */
    public long arrival() {
        return Format.i64(bytes, head + Format.FLAGS + Format.ARRIVAL);
    }

    public long source() {
        return Format.i64(bytes, head + Format.FLAGS + Format.SOURCE);
    }

    public long epoch() {
        return Format.i64(bytes, head + Format.FLAGS + Format.EPOCH);
    }

    /** How many bytes were left out because of damage. */
    public long skipped() {
        return skipped;
    }

    /** How many records were left out because of damage, as far as their number is known. */
    public long lost() {
        return lost;
    }

    @Override
    public void close() throws IOException {
        if (channel != null) {
            leave();
        }
    }
}
