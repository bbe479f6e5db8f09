package io.fogline.log;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Finds the end of a log that was not closed and cuts off what lies behind it. At most one commit is
 * in flight when a writer dies. So a place that cannot be read with two commits or more behind it was
 * acknowledged and got damaged later. It stays as it is, readers will report it, and the log goes on
 * behind it. Nothing before {@code committed} is ever cut off.
 */
final class LogRepair {
    private Committed.End safe;
    private Committed.End end;
    private int commits;
    private boolean damaged;

    private LogRepair() {}

    /** The end of the last whole commit; {@code claimed} is what {@code committed} says, null: nothing. */
    static Committed.End findEnd(Path folder, Committed.End claimed) throws IOException {
        List<Segment> segments = Segments.list(folder);
        if (claimed != null) {
            Committed.End found = lastCommit(segments, claimed.position());
            return found == null ? claimed : found;
        }
        for (int i = segments.size() - 1; i >= 0; i--) {
            Committed.End found = lastCommit(segments, segments.get(i).first());
            if (found != null) {
                return found;
            }
        }
        return new Committed.End(segments.isEmpty() ? 0 : segments.get(0).first(), 0);
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

    /**
     * The end of the last whole commit behind {@code start}, null when there is none. Behind a bad place it
     * takes two commits to count.
     */
    private static Committed.End lastCommit(List<Segment> segments, long start) throws IOException {
        LogRepair found = new LogRepair();
        long at = start;
        for (Segment segment : segments.subList(Math.max(Segments.locate(segments, start), 0), segments.size())) {
            if (segment.first() > at || segment.first() == at && !segment.hasHeader()) {
                found.passDamage();
            }
            at = found.follow(segment, Math.max(at, segment.frames()));
        }
        found.settle();
        return found.safe;
    }

    private long follow(Segment segment, long start) throws IOException {
        long stop = segment.end();
        long at = start;
        while (at < stop) {
            try (FrameWalk walk = new FrameWalk(segment, at, stop)) {
                try {
                    while (walk.nextChecked()) {
                        add(walk);
                    }
                    at = walk.end();
                } catch (BadFrame e) {
                    passDamage();
                    at = walk.scan(walk.end() + 1) ? walk.position() : stop;
                }
            }
        }
        return Math.max(at, stop);
    }

    private void add(FrameWalk walk) {
        if (walk.last()) {
            end = new Committed.End(walk.end(), walk.nextNumber());
            commits++;
        }
    }

    private void passDamage() {
        settle();
        end = null;
        commits = 0;
        damaged = true;
    }

    private void settle() {
        if (end != null && (!damaged || commits > 1)) {
            safe = end;
        }
    }
}
