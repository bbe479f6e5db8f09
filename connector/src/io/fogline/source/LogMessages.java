package io.fogline.source;

import io.fogline.log.FrameReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The messages of a slice of a log. Damage in what was committed costs the rest of its segment and is
 * one message with a problem, so that it is counted and told like any other bad one.
 */
final class LogMessages implements Messages {
    private static final byte[] NOTHING = {'\n'};

    private final FrameReader frames;
    private long told;
    private String problem;

    LogMessages(Slice slice) throws IOException {
        frames = new FrameReader(Path.of(slice.path()), slice.start(), slice.end(), true);
    }

    /** There is more to read: everything up to {@code end}. */
    void extend(long end) throws IOException {
        frames.extend(end);
    }

    @Override
    public boolean next() throws IOException {
        problem = null;
        if (frames.next()) {
            return true;
        }
        if (frames.skipped() == told) {
            return false;
        }
        problem = "the log is damaged: " + (frames.skipped() - told) + " bytes were left out";
        told = frames.skipped();
        return true;
    }

    @Override
    public byte[] bytes() {
        return problem == null ? frames.bytes() : NOTHING;
    }

    @Override
    public int from() {
        return problem == null ? frames.from() : 0;
    }

    @Override
    public int to() {
        return problem == null ? frames.to() : 0;
    }

    /** The position of the message's frame. */
    @Override
    public long position() {
        return frames.position();
    }

    @Override
    public byte[] topic() {
        return problem == null ? Arrays.copyOfRange(frames.bytes(), frames.topicFrom(), frames.topicTo()) : null;
    }

    @Override
    public String problem() {
        return problem;
    }

    @Override
    public long arrival(long batch) {
        return problem == null ? frames.arrival() : batch;
    }

    @Override
    public void close() throws IOException {
        frames.close();
    }
}
