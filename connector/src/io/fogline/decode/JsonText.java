package io.fogline.decode;

import java.util.Arrays;

/** JSON strings as UTF-8: plain ones stay where they are, ones with escapes are written out. */
final class JsonText {
    private JsonText() {}

    /** Puts the scanner's last string into a slot. */
    static void store(JsonScanner scanner, Record record, int slot) {
        if (!scanner.isEscaped()) {
            record.set(slot, Record.TEXT, scanner.bytes(), scanner.textFrom(), scanner.textLength());
            return;
        }
        byte[] target = record.scratch(scanner.textLength());
        int start = record.scratchUsed();
        int length = unescape(scanner.bytes(), scanner.textFrom(), scanner.textLength(), target, start);
        record.scratchTake(length);
        record.set(slot, Record.TEXT, target, start, length);
    }

    /** The entry of a tree that the scanner's last string names, or -1. */
    static int find(JsonScanner scanner, FieldTree tree) {
        if (!scanner.isEscaped()) {
            return tree.find(scanner.bytes(), scanner.textFrom(), scanner.textLength());
        }
        byte[] name = copy(scanner);
        return tree.find(name, 0, name.length);
    }

    /** The scanner's last string in an array of its own. */
    static byte[] copy(JsonScanner scanner) {
        byte[] target = new byte[scanner.textLength()];
        int length = unescape(scanner.bytes(), scanner.textFrom(), scanner.textLength(), target, 0);
        return Arrays.copyOf(target, length);
    }

    /** Writes a checked string without its escapes; the result is never longer than the original. */
    private static int unescape(byte[] bytes, int from, int length, byte[] target, int start) {
        int out = start;
        int i = from;
        int to = from + length;
        while (i < to) {
            if (bytes[i] != '\\') {
                target[out++] = bytes[i++];
            } else if (bytes[i + 1] != 'u') {
                target[out++] = plain(bytes[i + 1]);
                i += 2;
            } else {
                int code = hex(bytes, i + 2);
                i += 6;
                boolean pair = Character.isHighSurrogate((char) code) && i + 6 <= to && bytes[i] == '\\' && bytes[i + 1] == 'u';
                if (pair && Character.isLowSurrogate((char) hex(bytes, i + 2))) {
                    code = Character.toCodePoint((char) code, (char) hex(bytes, i + 2));
                    i += 6;
                }
                out = encode(code, target, out);
            }
        }
        return out - start;
    }

    private static byte plain(byte escape) {
        switch (escape) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            default:
                return escape;
        }
    }

    private static int hex(byte[] bytes, int at) {
        int code = 0;
        for (int i = 0; i < 4; i++) {
            code = code << 4 | Character.digit(bytes[at + i], 16);
        }
        return code;
    }

    /** UTF-8 of a code point; half a surrogate pair becomes the replacement character. */
    private static int encode(int point, byte[] target, int start) {
        int code = point >= 0xd800 && point <= 0xdfff ? 0xfffd : point;
        int out = start;
        if (code < 0x80) {
            target[out++] = (byte) code;
        } else if (code < 0x800) {
            target[out++] = (byte) (0xc0 | code >> 6);
            target[out++] = (byte) (0x80 | code & 0x3f);
        } else if (code < 0x10000) {
            target[out++] = (byte) (0xe0 | code >> 12);
            target[out++] = (byte) (0x80 | code >> 6 & 0x3f);
            target[out++] = (byte) (0x80 | code & 0x3f);
        } else {
            target[out++] = (byte) (0xf0 | code >> 18);
            target[out++] = (byte) (0x80 | code >> 12 & 0x3f);
            target[out++] = (byte) (0x80 | code >> 6 & 0x3f);
            target[out++] = (byte) (0x80 | code & 0x3f);
        }
        return out;
    }
}
