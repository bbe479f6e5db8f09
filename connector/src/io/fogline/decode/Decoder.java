package io.fogline.decode;

/**
 * Turns the bytes of one message into records. A decoder is used by one thread, gives a message the
 * same records whatever came before it, and adds either all records of a message or throws.
 */
public interface Decoder {
    /** Nesting deeper than this is refused in every format. */
    int MAX_DEPTH = 128;

    /**
     * Decodes {@code bytes[from, to)} into {@code out}, which the caller has cleared.
     *
     * <p>The byte {@code bytes[to]} must exist and be a control character (below 0x20): scanners
     * run into it instead of comparing with the end at every step. Values of the records may point
     * into {@code bytes} and are valid until that array changes.
     *
     * @throws BadMessage when the message is not valid in this format
     */
    void decode(byte[] bytes, int from, int to, Records out) throws BadMessage;

    /**
     * Decodes a message of one line that begins at {@code from} and ends somewhere before {@code limit},
     * if it is like the one before: then its end needs no search. Returns where it ends, or -1; then
     * nothing can be said of the message, and {@code out} is to be cleared.
     */
    default int ahead(byte[] bytes, int from, int limit, Records out) throws BadMessage {
        return -1;
    }
}
