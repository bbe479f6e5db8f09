package io.fogline.log;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Finds the end of a log that was not closed and cuts off what lies behind it. At most one commit is
 * in flight when a writer dies. So a place that cannot be read with two commits or more behind it was
 * acknowledged and got damaged later: that is reported, never cut off.
 */
final class LogRepair {
    private static final String HINT =
            " (truncate the file there, or move it away, to go on without what follows)";

    private final List<Segment> segments;

    private LogRepair(Path folder) throws IOException {
        segments = Segments.list(folder);
    }

    /** The end of the last whole commit; {@code claimed} is what {@code committed} says, -1: nothing. */
    static long findEnd(Path folder, long claimed) throws IOException {
        LogRepair repair = new LogRepair(folder);
        if (repair.segments.isEmpty()) {
            return Math.max(claimed, 0);
        }
        return claimed >= 0 && repair.isBoundary(claimed) ? repair.from(claimed) : repair.search();
    }

    /** Removes everything behind {@code end}. */
    static void cut(Path folder, long end) throws IOException {
        List<Segment> segments = Segments.list(folder);
        for (int i = segments.size() - 1; i >= 0; i--) {
            Segment segment = segments.get(i);
            if (segment.first() >= end) {
                Files.delete(segment.path());
            } else if (segment.end() > end) {
                try (RandomAccessFile file = new RandomAccessFile(segment.path().toFile(), "rw")) {
                    file.setLength(end - segment.first());
                }
            }
        }
        Disk.sync(folder);
    }

    /** Everything from {@code position} on is on disk. */
    static void syncFrom(Path folder, long position) throws IOException {
        List<Segment> segments = Segments.list(folder);
        for (int i = Math.max(Segments.locate(segments, position), 0); i < segments.size(); i++) {
            Disk.sync(segments.get(i).path());
        }
        Disk.sync(folder);
    }

    private long from(long claimed) throws IOException {
        for (Segment segment : segments.subList(0, Segments.locate(segments, claimed - 1) + 1)) {
            segment.checkHeader();
        }
        return Math.max(claimed, lastCommit(claimed));
    }

    /** The end when {@code committed} is of no use: the last commit in the last segment that has one. */
    private long search() throws IOException {
        for (Segment segment : segments.subList(0, segments.size() - 1)) {
            segment.checkHeader();
        }
        for (int i = segments.size() - 1; i >= 0; i--) {
            long end = lastCommit(segments.get(i).first());
            if (end >= 0) {
                return end;
            }
        }
        return segments.get(0).first();
    }

    /** Whether a frame starts or ends at {@code position}, judged by as little reading as will do. */
    private boolean isBoundary(long position) throws IOException {
        int index = Segments.locate(segments, position);
        if (index < 0) {
            return false;
        }
        Segment segment = segments.get(index);
        long end = segment.end();
        if (position == segment.first() || position == segment.frames() || position == end) {
            return true;
        }
        return position < end && (isFrame(segment, position, end) || walkMeets(segment, position, end));
    }

    private static boolean isFrame(Segment segment, long position, long end) throws IOException {
        try (FrameWalk walk = new FrameWalk(segment, position, end)) {
            return walk.nextChecked();
        } catch (BadFrame e) {
            return false;
        }
    }

    /** Damage before {@code position} leaves open whether it is at a frame, and is raised. */
    private static boolean walkMeets(Segment segment, long position, long end) throws IOException {
        try (FrameWalk walk = new FrameWalk(segment, segment.frames(), end)) {
            try {
                while (walk.end() < position && walk.next()) {
                    continue;
                }
            } catch (BadFrame e) {
                throw new LogDamaged(segment.path(), walk.end(), e.getMessage() + HINT);
            }
            return walk.end() == position;
        }
    }

    /** The end of the last whole commit behind {@code start}, -1 when there is none. */
    private long lastCommit(long start) throws IOException {
        long end = -1;
        long at = start;
        for (Segment segment : segments.subList(Math.max(Segments.locate(segments, start), 0), segments.size())) {
            if (segment.first() > at || !segment.hasHeader()) {
                return unlessDamaged(at, end);
            }
            try (FrameWalk walk = new FrameWalk(segment, Math.max(at, segment.frames()), segment.end())) {
                try {
                    while (walk.nextChecked()) {
                        end = walk.last() ? walk.end() : end;
                    }
                } catch (BadFrame e) {
                    return unlessDamaged(walk.end(), end);
                }
                at = walk.end();
            }
        }
        return end;
    }

    private long unlessDamaged(long bad, long end) throws IOException {
        int start = Math.max(Segments.locate(segments, bad), 0);
        int commits = 0;
        for (Segment segment : segments.subList(start, segments.size())) {
            commits += commits(segment, bad <= segment.first() ? segment.frames() : behind(segment, bad));
        }
        if (commits > 1) {
            Path file = segments.get(start).path();
            throw new LogDamaged(file, bad, "there are whole commits behind this place" + HINT);
        }
        return end;
    }

    /** How many commits end in the frames that can be read from {@code start} on. */
    private static int commits(Segment segment, long start) throws IOException {
        int commits = 0;
        try (FrameWalk walk = new FrameWalk(segment, start, segment.end())) {
            while (walk.nextChecked()) {
                commits += walk.last() ? 1 : 0;
            }
        } catch (BadFrame e) {
            return commits;
        }
        return commits;
    }

    /** Where the bad frame at {@code bad} ends by its length, the end of the file when that is bad too. */
    private static long behind(Segment segment, long bad) throws IOException {
        try (FrameWalk walk = new FrameWalk(segment, bad, segment.end())) {
            return walk.next() ? walk.end() : segment.end();
        } catch (BadFrame e) {
            return segment.end();
        }
    }
}
