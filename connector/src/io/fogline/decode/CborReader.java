package io.fogline.decode;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.util.Arrays;

/**
 * Reads the heads and strings of CBOR items (RFC 8949) in a byte range. Declared lengths are compared
 * with the bytes that are there before anything is made of them, so a message cannot ask for more
 * memory than it has bytes.
 */
final class CborReader {
    static final int BYTES = 2;
    static final int TEXT = 3;
    static final int LIST = 4;
    static final int MAP = 5;
    static final int FLOAT = 7;
    static final long INDEFINITE = -1;
    private static final int TAG = 6;
    private static final int BREAK = 0xff;
    private static final int DOUBLE = 27;
    private static final int MAX_BIGNUM = 1024;

    private byte[] bytes;
    private int at;
    private int to;
    private int major;
    private int info;
    private long argument;

    void reset(byte[] bytes, int from, int to) {
        this.bytes = bytes;
        this.at = from;
        this.to = to;
    }

    byte[] bytes() {
        return bytes;
    }

    int position() {
        return at;
    }

    boolean isAtEnd() {
        return at == to;
    }

    /** The major type of the last head. */
    int major() {
        return major;
    }

    /** The five low bits of the last head. */
    int info() {
        return info;
    }

    /** The argument of the last head, unsigned. */
    long argument() {
        return argument;
    }

    boolean isIndefinite() {
        return info == 31;
    }

    /** The number of elements of the container whose head was read, {@link #INDEFINITE} if not told. */
    long count(int itemsEach) throws BadMessage {
        if (info == 31) {
            return INDEFINITE;
        }
        if (argument < 0 || argument > (to - at) / itemsEach) {
            throw tooLong();
        }
        return argument;
    }

    /** Whether a container or string goes on; takes the break where one ends it. */
    boolean hasNext(long left) throws BadMessage {
        if (left != INDEFINITE) {
            return left > 0;
        }
        if (at >= to) {
            throw new BadMessage("not CBOR: ends too early");
        }
        if ((bytes[at] & 0xff) == BREAK) {
            at++;
            return false;
        }
        return true;
    }

    /** The length of the string whose head was read; that many bytes are there. */
    int length() throws BadMessage {
        if (argument < 0 || argument > to - at) {
            throw tooLong();
        }
        return (int) argument;
    }

    /** Reads a head; tags before it mean nothing here, but for large integers. */
    void headBehindTags() throws BadMessage {
        head();
        while (major == TAG) {
            long tag = argument;
            if (info == 31) {
                throw malformed();
            }
            head();
            if ((tag == 2 || tag == 3) && major == BYTES && info != 31 && argument >= 0 && argument <= MAX_BIGNUM) {
                bignum(tag == 3);
            }
        }
    }

    /** A large integer becomes a double: its head is replaced by that of one. */
    private void bignum(boolean negative) throws BadMessage {
        int length = length();
        double value = new BigInteger(1, Arrays.copyOfRange(bytes, at, at + length)).doubleValue();
        at += length;
        major = FLOAT;
        info = DOUBLE;
        argument = Double.doubleToRawLongBits(negative ? -1 - value : value);
    }

    private void head() throws BadMessage {
        if (at >= to) {
            throw new BadMessage("not CBOR: ends too early");
        }
        int first = bytes[at++] & 0xff;
        major = first >> 5;
        info = first & 0x1f;
        if (info < 24 || info == 31) {
            argument = info == 31 ? 0 : info;
            return;
        }
        if (info > 27) {
            throw malformed();
        }
        int size = 1 << (info - 24);
        if (at + size > to) {
            throw new BadMessage("not CBOR: ends too early");
        }
        argument = 0;
        for (int i = 0; i < size; i++) {
            argument = argument << 8 | bytes[at++] & 0xff;
        }
    }

    /** Passes over the byte string whose head was read. */
    void skipBytes() throws BadMessage {
        if (isIndefinite()) {
            chunks();
        } else {
            at += length();
        }
    }

    /** Passes over a text of this length. */
    void takeText(int length) throws BadMessage {
        if (!Bytes.isUtf8(bytes, at, at + length)) {
            throw new BadMessage("not UTF-8");
        }
        at += length;
    }

    /** The chunks of a text or byte string of indefinite length, whose head was read, joined. */
    byte[] chunks() throws BadMessage {
        int type = major;
        ByteArrayOutputStream joined = new ByteArrayOutputStream();
        while (hasNext(INDEFINITE)) {
            head();
            if (major != type || info == 31) {
                throw malformed();
            }
            int length = length();
            joined.write(bytes, at, length);
            if (type == TEXT) {
                takeText(length);
            } else {
                at += length;
            }
        }
        return joined.toByteArray();
    }

    static BadMessage malformed() {
        return new BadMessage("not CBOR: malformed item");
    }

    private static BadMessage tooLong() {
        return new BadMessage("not CBOR: a declared length is longer than the message");
    }
}
