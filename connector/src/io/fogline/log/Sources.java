package io.fogline.log;

import io.fogline.files.StateFile;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The last epoch of every job that wrote to a log: what the file {@code sources} says, and the frames
 * behind the position up to which it knows. Frames that cannot be read count as not there.
 */
public final class Sources {
    static final String NAME = "sources";

    private final Map<Long, Long> epochs = new HashMap<>();
    private long position;

    private Sources() {}

    /** The epoch in the last frame of {@code source} before {@code committed}, -1 when there is none. */
    public static long lastEpoch(Path folder, long source, long committed) throws IOException {
        return until(folder, committed).getOrDefault(source, -1L);
    }

    static Map<Long, Long> until(Path folder, long committed) throws IOException {
        Sources sources = load(folder);
        if (sources.position > committed) {
            sources = new Sources();
        }
        List<Segment> segments = Segments.before(folder, committed);
        try {
            for (int i = Math.max(Segments.locate(segments, sources.position), 0); i < segments.size(); i++) {
                sources.follow(segments.get(i), Segments.end(segments, i, committed));
            }
        } catch (NoSuchFileException e) {
            // Retention was faster; by now the file knows about what it removed.
            return until(folder, committed);
        }
        return sources.epochs;
    }

    private void follow(Segment segment, long stop) throws IOException {
        try (FrameWalk walk = new FrameWalk(segment, Math.max(segment.frames(), position), stop)) {
            while (walk.next()) {
                if (walk.source() != 0) {
                    epochs.put(walk.source(), walk.epoch());
                }
            }
        }
    }

    /** Nothing where the file is missing or damaged: then the log itself is read. */
    private static Sources load(Path folder) {
        Sources found = new Sources();
        try {
            List<String> lines = StateFile.lines(folder.resolve(NAME));
            for (String line : lines.subList(1, lines.size())) {
                String[] pair = line.split(" ");
                found.epochs.put(Long.parseUnsignedLong(pair[0]), Long.parseLong(pair[1]));
            }
            found.position = Long.parseLong(lines.get(0));
            return found;
        } catch (IOException | IllegalArgumentException | IndexOutOfBoundsException e) {
            return new Sources();
        }
    }

    static void store(Path folder, long position, Map<Long, Long> epochs) throws IOException {
        StringBuilder text = new StringBuilder().append(position).append('\n');
        epochs.forEach((source, epoch) ->
                text.append(Long.toUnsignedString(source)).append(' ').append(epoch).append('\n'));
        Disk.replace(folder.resolve(NAME), StateFile.sealed(text.toString()));
    }
}
