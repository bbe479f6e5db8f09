package io.fogline.decode;

import java.math.BigInteger;

/**
 * {@code cbor} (RFC 8949): a message is one map, or a list of maps, each of which is a record. Keys
 * are texts, or integers by their decimal text. The whole item is checked.
 */
public final class CborDecoder implements Decoder {
    private static final int MAX_FIELDS = 1_000_000;

    private final FieldTree root;
    private final CborReader in = new CborReader();
    private int fields;

    CborDecoder(Layout layout) {
        root = layout.root();
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        in.reset(bytes, from, to);
        fields = 0;
        in.headBehindTags();
        if (in.major() == CborReader.LIST) {
            long left = in.count(1);
            while (in.hasNext(left)) {
                left = left == CborReader.INDEFINITE ? left : left - 1;
                in.headBehindTags();
                record(out, 1);
            }
        } else {
            record(out, 0);
        }
        if (!in.isAtEnd()) {
            throw new BadMessage("not CBOR: bytes behind the item");
        }
    }

    private void record(Records out, int depth) throws BadMessage {
        if (in.major() != CborReader.MAP) {
            throw new BadMessage("not a CBOR map");
        }
        map(out.add(), root, depth);
    }

    /** Reads the members of a map whose head was read. */
    private void map(Record record, FieldTree tree, int depth) throws BadMessage {
        checkDepth(depth);
        long left = in.count(2);
        while (in.hasNext(left)) {
            left = left == CborReader.INDEFINITE ? left : left - 1;
            countField();
            int entry = key(tree, depth + 1);
            in.headBehindTags();
            if (entry >= 0) {
                tree.forgetInside(entry, record);
            }
            if (entry >= 0 && in.major() == CborReader.MAP && tree.child(entry) != null) {
                set(record, tree.slot(entry), Record.OTHER);
                map(record, tree.child(entry), depth + 1);
            } else {
                value(record, entry < 0 ? -1 : tree.slot(entry), depth + 1);
            }
        }
    }

    private int key(FieldTree tree, int depth) throws BadMessage {
        in.headBehindTags();
        if (in.major() == CborReader.TEXT && !in.isIndefinite()) {
            int length = in.length();
            int start = in.position();
            in.takeText(length);
            return tree.find(in.bytes(), start, length);
        }
        if (in.major() <= 1 && !in.isIndefinite() && in.argument() >= 0) {
            return tree.find(Long.toString(in.major() == 0 ? in.argument() : -1 - in.argument()));
        }
        if (in.major() == CborReader.TEXT) {
            byte[] name = in.chunks();
            return tree.find(name, 0, name.length);
        }
        value(null, -1, depth);
        return -1;
    }

    /** Reads the value whose head was read into a slot; -1: only checks it. */
    private void value(Record record, int slot, int depth) throws BadMessage {
        switch (in.major()) {
            case 0, 1:
                integer(record, slot);
                break;
            case CborReader.BYTES:
                in.skipBytes();
                set(record, slot, Record.OTHER);
                break;
            case CborReader.TEXT:
                text(record, slot);
                break;
            case CborReader.LIST, CborReader.MAP:
                container(depth);
                set(record, slot, Record.OTHER);
                break;
            default:
                simple(record, slot);
        }
    }

    private void container(int depth) throws BadMessage {
        checkDepth(depth);
        boolean map = in.major() == CborReader.MAP;
        long left = in.count(map ? 2 : 1);
        while (in.hasNext(left)) {
            left = left == CborReader.INDEFINITE ? left : left - 1;
            if (map) {
                countField();
            }
            for (int i = map ? 2 : 1; i > 0; i--) {
                in.headBehindTags();
                value(null, -1, depth + 1);
            }
        }
    }

    private void integer(Record record, int slot) throws BadMessage {
        if (in.isIndefinite()) {
            throw CborReader.malformed();
        }
        if (slot < 0) {
            return;
        }
        if (in.argument() >= 0) {
            record.setLong(slot, in.major() == 0 ? in.argument() : -1 - in.argument());
        } else {
            double value = new BigInteger(Long.toUnsignedString(in.argument())).doubleValue();
            record.setDouble(slot, in.major() == 0 ? value : -1 - value);
        }
    }

    private void text(Record record, int slot) throws BadMessage {
        if (in.isIndefinite()) {
            byte[] joined = in.chunks();
            if (slot >= 0) {
                record.set(slot, Record.TEXT, joined, 0, joined.length);
            }
            return;
        }
        int length = in.length();
        int start = in.position();
        in.takeText(length);
        if (slot >= 0) {
            record.set(slot, Record.TEXT, in.bytes(), start, length);
        }
    }

    private void simple(Record record, int slot) throws BadMessage {
        switch (in.info()) {
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
                setDouble(record, slot, half((int) in.argument()));
                break;
            case 26:
                setDouble(record, slot, Float.intBitsToFloat((int) in.argument()));
                break;
            case 27:
                setDouble(record, slot, Double.longBitsToDouble(in.argument()));
                break;
            case 31:
                throw CborReader.malformed();
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

    /** A bound for who keeps all fields, as gateways and the store do. */
    private void countField() throws BadMessage {
        if (++fields > MAX_FIELDS) {
            throw new BadMessage("not CBOR: too many members");
        }
    }

    private static void checkDepth(int depth) throws BadMessage {
        if (depth >= MAX_DEPTH) {
            throw new BadMessage("nested deeper than " + MAX_DEPTH);
        }
    }
}
