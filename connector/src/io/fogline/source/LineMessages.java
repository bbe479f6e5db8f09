package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Bytes;
import io.fogline.decode.Decoder;
import io.fogline.decode.Records;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;

/**
 * The lines of a slice, without line ends (LF or CRLF), blank lines and the byte order mark. A line
 * longer than {@link #MAX_BYTES} is given as its beginning with a problem.
 */
final class LineMessages implements Messages {
    /** Small enough to stay in a core's cache between reading and decoding. */
    private static final int BLOCK = 1 << 18;
    private static final String TOO_LONG = "longer than " + MAX_BYTES + " bytes";

    private final FileChannel file;
    private final Slice slice;
    /** One byte longer than what is ever filled, for the terminator of the last line. */
    private byte[] buffer;
    private int filled;
    private int nextLine;
    private long bufferPosition;
    private int from;
    private int to;
    private String problem;
    private byte[] excerpt;
    private long excerptPosition;

    LineMessages(Slice slice) throws IOException {
        this.slice = slice;
        this.file = FileChannel.open(Path.of(slice.path()), StandardOpenOption.READ);
        this.bufferPosition = slice.start();
        this.buffer = new byte[(int) Math.min(BLOCK, Math.max(64, slice.end() - slice.start())) + 1];
        if (slice.start() == 0) {
            fill();
            boolean mark = filled >= 3 && buffer[0] == (byte) 0xef && buffer[1] == (byte) 0xbb && buffer[2] == (byte) 0xbf;
            nextLine = mark ? 3 : 0;
        }
    }

    @Override
    public boolean next() throws IOException {
        problem = null;
        while (findLine()) {
            if (problem != null || !Bytes.isBlank(buffer, from, to)) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean next(Decoder decoder, Records into) throws BadMessage {
        int end = nextLine < filled ? decoder.ahead(buffer, nextLine, filled, into) : -1;
        if (end < 0 || end >= filled || buffer[end] != '\n') {
            into.clear(into.arrival());
            return false;
        }
        problem = null;
        line(end, end + 1);
        return true;
    }

    private boolean findLine() throws IOException {
        int searched = nextLine;
        while (true) {
            int newline = Bytes.indexOf(buffer, (byte) '\n', searched, filled);
            if (newline >= 0) {
                line(newline, newline + 1);
                return true;
            }
            searched = filled - nextLine;
            if (searched > MAX_BYTES) {
                skipLongLine();
                return true;
            }
            if (!fill()) {
                return lastLine();
            }
        }
    }

    private boolean lastLine() {
        if (nextLine >= filled) {
            return false;
        }
        buffer[filled] = '\n';
        line(filled, filled);
        return true;
    }

    private void line(int end, int following) {
        from = nextLine;
        to = end > from && buffer[end - 1] == '\r' ? end - 1 : end;
        nextLine = following;
    }

    /** Moves the unfinished line to the front and reads on behind it; false at the end of the slice. */
    private boolean fill() throws IOException {
        int kept = filled - nextLine;
        if (kept > buffer.length / 2) {
            buffer = Arrays.copyOfRange(buffer, nextLine, nextLine + 2 * buffer.length);
        } else {
            System.arraycopy(buffer, nextLine, buffer, 0, kept);
        }
        bufferPosition += nextLine;
        nextLine = 0;
        filled = kept;
        long left = slice.end() - bufferPosition - filled;
        if (left <= 0) {
            return false;
        }
        int room = (int) Math.min(left, buffer.length - 1 - filled);
        int read = file.read(ByteBuffer.wrap(buffer, filled, room), bufferPosition + filled);
        if (read < 0) {
            throw new IOException(slice.path() + " is shorter than it was: it must not change while it is read");
        }
        filled += read;
        return true;
    }

    private void skipLongLine() throws IOException {
        excerptPosition = bufferPosition + nextLine;
        excerpt = Arrays.copyOfRange(buffer, nextLine, nextLine + EXCERPT + 1);
        excerpt[EXCERPT] = '\n';
        problem = TOO_LONG;
        do {
            nextLine = filled;
            if (!fill()) {
                return;
            }
            nextLine = Bytes.indexOf(buffer, (byte) '\n', 0, filled) + 1;
        } while (nextLine == 0);
    }

    @Override
    public byte[] bytes() {
        return problem == null ? buffer : excerpt;
    }

    @Override
    public int from() {
        return problem == null ? from : 0;
    }

    @Override
    public int to() {
        return problem == null ? to : EXCERPT;
    }

    @Override
    public long position() {
        return problem == null ? bufferPosition + from : excerptPosition;
    }

    @Override
    public String problem() {
        return problem;
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
