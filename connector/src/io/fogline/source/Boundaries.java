package io.fogline.source;

import java.io.IOException;

/**
 * Where messages end in a file. All positions given and returned are between messages, so slices cut
 * at them hold whole messages.
 */
interface Boundaries {
    /**
     * The first boundary at or behind {@code wanted}, or the last one before {@code size} where there
     * is none.
     *
     * @param from a boundary before {@code wanted}
     * @param size bytes of the file that count
     * @param complete nothing will follow at {@code size}, so it is a boundary
     */
    long find(String path, long from, long wanted, long size, boolean complete) throws IOException;

    static Boundaries of(String format) {
        return format.equals("cbor") ? new CborBoundaries() : Boundaries::findLine;
    }

    private static long findLine(String path, long from, long wanted, long size, boolean complete) throws IOException {
        if (wanted >= size && complete) {
            return size;
        }
        try (ByteWindow window = new ByteWindow(path, size)) {
            for (long i = Math.max(from, wanted - 1); i < size; i++) {
                if (window.at(i) == '\n') {
                    return i + 1;
                }
            }
            if (complete) {
                return size;
            }
            for (long i = Math.min(wanted - 1, size) - 1; i >= from; i--) {
                if (window.at(i) == '\n') {
                    return i + 1;
                }
            }
            return from;
        }
    }
}
