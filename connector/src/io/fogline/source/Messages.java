package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Decoder;
import io.fogline.decode.Records;
import java.io.Closeable;
import java.io.IOException;

/**
 * Where messages come from. After {@link #next} is true, the message is {@code bytes()[from(), to())},
 * valid until the following call; the byte at {@code to()} exists and is a control character, as
 * decoders need it. Used by one thread.
 */
interface Messages extends Closeable {
    /** Messages longer than this are not held in memory: they are bad. */
    int MAX_BYTES = 16 << 20;
    /** How much of a message that cannot be read is kept, to show it. */
    int EXCERPT = 64 << 10;

    boolean next() throws IOException;

    /** Moves to the next message and decodes it, if both can be done at once; else nothing happens. */
    default boolean next(Decoder decoder, Records into) throws BadMessage {
        return false;
    }

    byte[] bytes();

    int from();

    int to();

    /** When the message came, in microseconds; {@code batch} where it is not known better. */
    default long arrival(long batch) {
        return batch;
    }

    /** Where the message starts in its file. */
    long position();

    /** The topic the message came on, UTF-8; null where there is none. */
    default byte[] topic() {
        return null;
    }

    /** Why the message cannot be read (then only its beginning is given), or null. */
    String problem();
}
