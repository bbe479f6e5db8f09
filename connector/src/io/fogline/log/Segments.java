package io.fogline.log;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.regex.Pattern;

/** Which segments a log has, and where in them a position is. */
public final class Segments {
    private static final Pattern NAME = Pattern.compile("[0-9]{20}\\.seg");

    private Segments() {}

    /** All segments in order; none where there is no folder yet. Other files are left alone. */
    public static List<Segment> list(Path folder) throws IOException {
        List<Segment> found = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(folder)) {
            for (Path file : files) {
                String name = file.getFileName().toString();
                if (NAME.matcher(name).matches() && name.compareTo("0922") < 0) {
                    found.add(new Segment(Long.parseLong(name.substring(0, 20)), file));
                }
            }
        } catch (NoSuchFileException e) {
            return found;
        }
        found.sort(Comparator.comparingLong(Segment::first));
        return withoutStrays(found);
    }

    /** Without copies of segments under another name, within what another segment holds. */
    private static List<Segment> withoutStrays(List<Segment> segments) throws IOException {
        List<Segment> kept = new ArrayList<>();
        long end = 0;
        for (Segment segment : segments) {
            try {
                if (segment.first() < end && FrameWalk.isForeign(segment)) {
                    continue;
                }
                end = segment.end();
            } catch (NoSuchFileException e) {
                continue;
            }
            kept.add(segment);
        }
        return kept;
    }

    /** Fails when the log was written by a version whose frames had no numbers. */
    static void requireCurrent(Path folder) throws IOException {
        List<Segment> segments = list(folder);
        try {
            if (!segments.isEmpty() && segments.get(0).isOld()) {
                throw new LogException(folder + " is a log of format 1, and only format " + Format.VERSION
                        + " can be read: let the earlier version finish with it, or move it away");
            }
        } catch (NoSuchFileException e) {
            return;
        }
    }

    /** The segments that hold something before {@code position}. */
    public static List<Segment> before(Path folder, long position) throws IOException {
        List<Segment> found = list(folder);
        found.removeIf(segment -> segment.first() >= position);
        return found;
    }

    /** The first position that is still there; {@code end} when the log is empty. */
    public static long first(Path folder, long end) throws IOException {
        List<Segment> segments = list(folder);
        return segments.isEmpty() ? end : segments.get(0).first();
    }

    /** The index of the segment that holds the byte at {@code position}, -1 when it is before all. */
    public static int locate(List<Segment> segments, long position) {
        int index = segments.size() - 1;
        while (index >= 0 && segments.get(index).first() > position) {
            index--;
        }
        return index;
    }

    /** Where segment {@code index} ends: where the next one begins, or at {@code end}. */
    static long end(List<Segment> segments, int index, long end) {
        return index + 1 < segments.size() ? Math.min(segments.get(index + 1).first(), end) : end;
    }
}
