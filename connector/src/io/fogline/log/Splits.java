package io.fogline.log;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Finds places where the stretch between two positions can be divided. */
public final class Splits {
    private Splits() {}

    /**
     * The start of the first frame or segment at or behind {@code wanted}, {@code to} when there is
     * none before it. {@code from} is the start of a frame or segment; only heads of frames in the
     * segment of {@code wanted} are read.
     */
    public static long at(Path folder, long from, long wanted, long to) throws IOException {
        if (wanted <= from) {
            return from;
        }
        List<Segment> segments = Segments.before(folder, to);
        int index = Segments.locate(segments, wanted);
        if (wanted >= to || segments.isEmpty()) {
            return to;
        }
        if (index < 0) {
            return segments.get(0).first();
        }
        Segment segment = segments.get(index);
        long stop = Segments.end(segments, index, to);
        return segment.first() == wanted ? wanted : walk(segment, Math.max(from, segment.frames()), wanted, stop);
    }

    private static long walk(Segment segment, long start, long wanted, long stop) throws IOException {
        try (FrameWalk walk = new FrameWalk(segment, start, stop)) {
            while (walk.end() < wanted && walk.next()) {
                continue;
            }
            return walk.end();
        }
    }
}
