package io.fogline.log;

import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;

/**
 * A stretch of a log in which nothing can be read. Records are numbered, so how many it held follows from
 * the frames before and behind it, whatever is left of its bytes.
 *
 * @param records how many it held, -1 when that is not known
 * @param number the number of the first record behind it
 */
record Gap(long start, long end, long records, long number) {
    /** The gap at {@code start}; {@code expected} is the number of the record that should be there, or -1. */
    static Gap measure(Path folder, long start, Committed.End committed, long expected) throws IOException {
        List<Segment> segments = Segments.before(folder, committed.position());
        for (int i = Math.max(Segments.locate(segments, start), 0); i < segments.size(); i++) {
            long from = Math.max(start, segments.get(i).frames());
            long stop = Segments.end(segments, i, committed.position());
            try (FrameWalk walk = new FrameWalk(segments.get(i), from, stop)) {
                if (walk.next()) {
                    return walk.position() == start
                            ? new Gap(start, walk.end(), walk.count(), walk.nextNumber())
                            : before(folder, segments, start, walk.position(), walk.number(), expected);
                }
            } catch (NoSuchFileException e) {
                continue;
            }
        }
        return before(folder, segments, start, committed.position(), committed.number(), expected);
    }

    private static Gap before(
            Path folder, List<Segment> segments, long start, long end, long number, long expected)
            throws IOException {
        long known = expected >= 0 ? expected : numberAt(folder, segments, start);
        return new Gap(start, end, known >= 0 && known <= number ? number - known : Format.UNKNOWN, number);
    }

    /** The number of the record at {@code position}, by the last frame before it. */
    private static long numberAt(Path folder, List<Segment> segments, long position) throws IOException {
        long to = position;
        for (int i = Segments.locate(segments, position); i >= 0; i--) {
            long number = Format.UNKNOWN;
            try (FrameWalk walk = new FrameWalk(segments.get(i), segments.get(i).frames(), to)) {
                while (walk.next()) {
                    number = walk.nextNumber();
                }
            } catch (NoSuchFileException e) {
                return Format.UNKNOWN;
            }
            if (number >= 0) {
                return number;
            }
            to = segments.get(i).first();
        }
        Committed.End begin = Removed.load(folder);
        return to == begin.position() ? begin.number() : Format.UNKNOWN;
    }
}
