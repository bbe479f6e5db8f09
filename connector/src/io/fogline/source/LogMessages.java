package io.fogline.source;

import io.fogline.log.FrameReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The messages of a slice of a log. What is lost to damage is one message with a problem, so that it is
 * reported like any other bad one.
 */
final class LogMessages implements Messages {
    private static final byte[] NOTHING = {'\n'};

    private final FrameReader frames;
    private long toldBytes;
    private long toldRecords;
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
        if (frames.skipped() == toldBytes) {
            return false;
        }
        problem = String.format("the log is damaged: %d records in %d bytes are lost",
                frames.lost() - toldRecords, frames.skipped() - toldBytes);
        toldBytes = frames.skipped();
        toldRecords = frames.lost();
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
