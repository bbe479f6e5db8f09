package io.fogline.source;

import java.io.IOException;

/**
 * Boundaries in a CBOR sequence (RFC 8742). Items can only be found from the front, so it walks over
 * their heads. What follows a malformed item cannot be divided: the rest of the file is one message.
 */
final class CborBoundaries implements Boundaries {
    @Override
    public long find(String path, long from, long wanted, long size, boolean complete) throws IOException {
        if (wanted >= size && complete) {
            return size;
        }
        try (ByteWindow window = new ByteWindow(path, size)) {
            CborWalker walker = new CborWalker(window);
            long at = from;
            while (at < wanted) {
                long end = walker.end(at);
                if (end == CborWalker.MALFORMED || end == CborWalker.CUT_SHORT && complete) {
                    return size;
                }
                if (end == CborWalker.CUT_SHORT) {
                    return at;
                }
                at = end;
            }
            return at;
        }
    }
}
