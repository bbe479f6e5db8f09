package io.fogline.source;

import java.io.IOException;

/** The items of a slice of a CBOR sequence. An item too long, cut short or malformed has a problem. */
final class CborMessages implements Messages {
    private final Slice slice;
    private final ByteWindow window;
    private final CborWalker walker;
    private byte[] buffer = new byte[1 << 12];
    private long position;
    private long nextPosition;
    private int length;
    private String problem;

    CborMessages(Slice slice) throws IOException {
        this.slice = slice;
        this.window = new ByteWindow(slice.path(), slice.end());
        this.walker = new CborWalker(window);
        this.nextPosition = slice.start();
    }

    @Override
    public boolean next() throws IOException {
        position = nextPosition;
        if (position >= slice.end()) {
            return false;
        }
        long end = walker.end(position);
        problem = end == CborWalker.MALFORMED
                ? "not CBOR: malformed item, the rest of the file cannot be read"
                : end == CborWalker.CUT_SHORT ? "not CBOR: ends too early" : null;
        nextPosition = end < 0 ? slice.end() : end;
        if (problem == null && nextPosition - position > MAX_BYTES) {
            problem = "longer than " + MAX_BYTES + " bytes";
        }
        length = (int) Math.min(nextPosition - position, problem == null ? MAX_BYTES : EXCERPT);
        if (length >= buffer.length) {
            buffer = new byte[Math.max(2 * buffer.length, length + 1)];
        }
        window.read(position, buffer, 0, length);
        buffer[length] = 0;
        return true;
    }

    @Override
    public byte[] bytes() {
        return buffer;
    }

    @Override
    public int from() {
        return 0;
    }

    @Override
    public int to() {
        return length;
    }

    @Override
    public long position() {
        return position;
    }

    @Override
    public String problem() {
        return problem;
    }

    @Override
    public void close() throws IOException {
        window.close();
    }
}
