package io.fogline.source;

import io.fogline.decode.Decoder;
import java.io.IOException;

/**
 * Finds where CBOR items end by their heads alone, without holding them. Nothing is ever allocated
 * for a declared length, and the work is bounded by the bytes that are there.
 */
final class CborWalker {
    /** The item needs bytes behind the window's limit. */
    static final long CUT_SHORT = -1;
    /** What is there is no item, so the rest of the file cannot be divided into items. */
    static final long MALFORMED = -2;

    private static final long INDEFINITE = -1;
    private static final int BREAK = 0xff;

    private final ByteWindow window;
    private final long[] left = new long[Decoder.MAX_DEPTH + 1];

    CborWalker(ByteWindow window) {
        this.window = window;
    }

    /** The position behind the item at {@code start}, or {@link #CUT_SHORT} or {@link #MALFORMED}. */
    long end(long start) throws IOException {
        int depth = 0;
        long at = start;
        while (true) {
            int head = window.at(at);
            if (head < 0) {
                return CUT_SHORT;
            }
            int major = head >> 5;
            int info = head & 0x1f;
            boolean complete = true;
            if (head == BREAK) {
                if (depth == 0 || left[--depth] != INDEFINITE) {
                    return MALFORMED;
                }
                at++;
            } else if (info == 31) {
                if (major < 2 || major == 6 || depth == left.length) {
                    return MALFORMED;
                }
                left[depth++] = INDEFINITE;
                complete = false;
                at++;
            } else {
                int size = info < 24 ? 0 : 1 << (info - 24);
                if (info > 27) {
                    return MALFORMED;
                }
                if (at + size >= window.limit()) {
                    return CUT_SHORT;
                }
                long argument = argument(at, info, size);
                at += 1 + size;
                if (major >= 2 && major <= 5 && (argument < 0 || argument > Long.MAX_VALUE / 4)) {
                    return MALFORMED;
                }
                if (major == 2 || major == 3) {
                    if (argument > window.limit() - at) {
                        return CUT_SHORT;
                    }
                    at += argument;
                } else if ((major == 4 || major == 5) && argument > 0) {
                    if (depth == left.length) {
                        return MALFORMED;
                    }
                    left[depth++] = major == 4 ? argument : 2 * argument;
                    complete = false;
                } else if (major == 6) {
                    complete = false;
                }
            }
            if (complete) {
                while (depth > 0 && left[depth - 1] != INDEFINITE && --left[depth - 1] == 0) {
                    depth--;
                }
                if (depth == 0) {
                    return at;
                }
            }
        }
    }

    private long argument(long at, int info, int size) throws IOException {
        long argument = size == 0 ? info : 0;
        for (int i = 1; i <= size; i++) {
            argument = argument << 8 | window.at(at + i);
        }
        return argument;
    }
}
