package io.fogline.decode;

import java.io.ByteArrayOutputStream;
import java.math.BigInteger;
import java.util.Arrays;

/**
 * {@code cbor} (RFC 8949): a message is one map, or a list of maps, each of which is a record. The
 * whole item is checked. Declared lengths are compared with the bytes that are there before anything
 * is made of them, so a message cannot ask for more memory than it has bytes.
 */
public final class CborDecoder implements Decoder {
    private static final int BYTES = 2;
    private static final int TEXT = 3;
    private static final int LIST = 4;
    private static final int MAP = 5;
    private static final int TAG = 6;
    private static final int BREAK = 0xff;
    private static final int MAX_BIGNUM = 1024;
    private static final long INDEFINITE = -1;

    private final FieldTree root;
    private byte[] bytes;
    private int at;
    private int to;
    /** The last head: its major type, the five low bits and the argument (unsigned). */
    private int major;
    private int info;
    private long argument;

    CborDecoder(Layout layout) {
        root = layout.root();
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        this.bytes = bytes;
        this.at = from;
        this.to = to;
        headBehindTags();
        if (major == LIST) {
            long left = count(1);
            while (hasNext(left)) {
                left = left == INDEFINITE ? left : left - 1;
                headBehindTags();
                record(out, 1);
            }
        } else {
            record(out, 0);
        }
        if (at != to) {
            throw new BadMessage("not CBOR: bytes behind the item");
        }
    }

    private void record(Records out, int depth) throws BadMessage {
        if (major != MAP) {
            throw new BadMessage("not a CBOR map");
        }
        map(out.add(), root, depth);
    }

    /** Reads the members of a map whose head was read. */
    private void map(Record record, FieldTree tree, int depth) throws BadMessage {
        checkDepth(depth);
        long left = count(2);
        while (hasNext(left)) {
            left = left == INDEFINITE ? left : left - 1;
            int entry = key(tree, depth + 1);
            headBehindTags();
            if (entry >= 0 && major == MAP && tree.child(entry) != null) {
                set(record, tree.slot(entry), Record.OTHER);
                map(record, tree.child(entry), depth + 1);
            } else {
                value(record, entry < 0 ? -1 : tree.slot(entry), depth + 1);
            }
        }
    }

    private int key(FieldTree tree, int depth) throws BadMessage {
        headBehindTags();
        if (major == TEXT && info != 31) {
            int length = length();
            int start = at;
            takeText(length);
            return tree.find(bytes, start, length);
        }
        if (major <= 1 && argument >= 0) {
            return tree.find(Long.toString(major == 0 ? argument : -1 - argument));
        }
        if (major == TEXT) {
            byte[] name = chunks();
            return tree.find(name, 0, name.length);
        }
        value(null, -1, depth);
        return -1;
    }

    /** Reads the value whose head was read into a slot; -1: only checks it. */
    private void value(Record record, int slot, int depth) throws BadMessage {
        switch (major) {
            case 0, 1:
                integer(record, slot);
                break;
            case BYTES:
                if (info == 31) {
                    chunks();
                } else {
                    at += length();
                }
                set(record, slot, Record.OTHER);
                break;
            case TEXT:
                text(record, slot);
                break;
            case LIST, MAP:
                container(depth);
                set(record, slot, Record.OTHER);
                break;
            default:
                simple(record, slot);
        }
    }

    private void container(int depth) throws BadMessage {
        checkDepth(depth);
        boolean map = major == MAP;
        long left = count(map ? 2 : 1);
        while (hasNext(left)) {
            left = left == INDEFINITE ? left : left - 1;
            for (int i = map ? 2 : 1; i > 0; i--) {
                headBehindTags();
                value(null, -1, depth + 1);
            }
        }
    }

    private void integer(Record record, int slot) throws BadMessage {
        if (info == 31) {
            throw malformed();
        }
        if (slot < 0) {
            return;
        }
        if (argument >= 0) {
            record.setLong(slot, major == 0 ? argument : -1 - argument);
        } else {
            double value = new BigInteger(Long.toUnsignedString(argument)).doubleValue();
            record.setDouble(slot, major == 0 ? value : -1 - value);
        }
    }

    private void text(Record record, int slot) throws BadMessage {
        if (info == 31) {
            byte[] joined = chunks();
            if (slot >= 0) {
                record.set(slot, Record.TEXT, joined, 0, joined.length);
            }
            return;
        }
        int length = length();
        int start = at;
        takeText(length);
        if (slot >= 0) {
            record.set(slot, Record.TEXT, bytes, start, length);
        }
    }

    private void takeText(int length) throws BadMessage {
        if (!Bytes.isUtf8(bytes, at, at + length)) {
            throw new BadMessage("not UTF-8");
        }
        at += length;
    }

    /** The chunks of a text or byte string of indefinite length, whose head was read, joined. */
    private byte[] chunks() throws BadMessage {
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

    private void simple(Record record, int slot) throws BadMessage {
        switch (info) {
            case 20:
                set(record, slot, Record.FALSE);
                break;
            case 21:
                set(record, slot, Record.TRUE);
                break;
            case 22, 23:
                set(record, slot, Record.NULL);
                break;
            case 25:
                setDouble(record, slot, half((int) argument));
                break;
            case 26:
                setDouble(record, slot, Float.intBitsToFloat((int) argument));
                break;
            case 27:
                setDouble(record, slot, Double.longBitsToDouble(argument));
                break;
            case 31:
                throw malformed();
            default:
                set(record, slot, Record.OTHER);
        }
    }

    private static double half(int bits) {
        int exponent = bits >> 10 & 0x1f;
        int fraction = bits & 0x3ff;
        double value;
        if (exponent == 0) {
            value = fraction * 0x1p-24;
        } else if (exponent == 31) {
            value = fraction == 0 ? Double.POSITIVE_INFINITY : Double.NaN;
        } else {
            value = (1024 + fraction) * Math.pow(2, exponent - 25);
        }
        return (bits & 0x8000) == 0 ? value : -value;
    }

    private static void set(Record record, int slot, byte kind) {
        if (slot >= 0) {
            record.set(slot, kind);
        }
    }

    private static void setDouble(Record record, int slot, double value) {
        if (slot >= 0) {
            record.setDouble(slot, value);
        }
    }

    /** The number of elements of the container whose head was read, {@link #INDEFINITE} if not told. */
    private long count(int itemsEach) throws BadMessage {
        if (info == 31) {
            return INDEFINITE;
        }
        if (argument < 0 || argument > (to - at) / itemsEach) {
            throw tooLong();
        }
        return argument;
    }

    /** Whether a container or string goes on; takes the break where one ends it. */
    private boolean hasNext(long left) throws BadMessage {
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
    private int length() throws BadMessage {
        if (argument < 0 || argument > to - at) {
            throw tooLong();
        }
        return (int) argument;
    }

    /** Reads a head; tags before it mean nothing here, but for large integers. */
    private void headBehindTags() throws BadMessage {
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
        major = 7;
        info = 27;
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

    private static void checkDepth(int depth) throws BadMessage {
        if (depth >= MAX_DEPTH) {
            throw new BadMessage("nested deeper than " + MAX_DEPTH);
        }
    }

    private static BadMessage malformed() {
        return new BadMessage("not CBOR: malformed item");
    }

    private static BadMessage tooLong() {
        return new BadMessage("not CBOR: a declared length is longer than the message");
    }
}
