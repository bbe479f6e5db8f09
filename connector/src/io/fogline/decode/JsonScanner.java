package io.fogline.decode;

/**
 * A strict reader of one JSON text (RFC 8259) in a byte range, without objects per token. Strings
 * are checked for valid escapes and UTF-8, numbers for the grammar, nesting for depth, also where
 * the value is skipped: a text it accepts to the end is valid JSON.
 *
 * <p>It relies on the terminator behind the range (see {@link Decoder#decode}).
 */
final class JsonScanner {
    private static final byte PLAIN = 0;
    private static final byte QUOTE = 1;
    private static final byte ESCAPE = 2;
    private static final byte CONTROL = 3;
    private static final byte WIDE = 4;
    private static final byte[] CLASS = new byte[256];

    static {
        for (int c = 0; c < 256; c++) {
            CLASS[c] = c < 0x20 ? CONTROL : c >= 0x80 ? WIDE : c == '"' ? QUOTE : c == '\\' ? ESCAPE : PLAIN;
        }
    }

    private byte[] bytes;
    private int from;
    private int at;
    private int to;
    /** The last string: where its content lies, and whether it holds escapes. */
    private int textFrom;
    private int textTo;
    private boolean escaped;

    void reset(byte[] bytes, int from, int to) {
        this.bytes = bytes;
        this.from = from;
        this.at = from;
        this.to = to;
    }

    byte[] bytes() {
        return bytes;
    }

    int position() {
        return at;
    }

    void seek(int position) {
        at = position;
    }

    int textFrom() {
        return textFrom;
    }

    int textLength() {
        return textTo - textFrom;
    }

    boolean isEscaped() {
        return escaped;
    }

    /** The next byte that is not white space, not consumed; 0 at the end. */
    int peek() {
        int c = bytes[at];
        return c > ' ' || c < 0 ? c : peekBehindBlanks();
    }

    private int peekBehindBlanks() {
        while (at < to) {
            int c = bytes[at];
            if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
                return c;
            }
            at++;
        }
        return 0;
    }

    /** Consumes the byte that {@link #peek} gave. */
    void take() {
        at++;
    }

    void expect(char wanted) throws BadMessage {
        if (peek() != wanted) {
            throw unexpected("'" + wanted + "'");
        }
        at++;
    }

    void expectEnd() throws BadMessage {
        peek();
        if (at < to) {
            throw unexpected("the end");
        }
    }

    /**
     * After a member or an element: true when another follows, false when {@code close} ends the
     * object or list. Both are consumed.
     */
    boolean more(char close) throws BadMessage {
        int c = peek();
        if (c != ',' && c != close) {
            throw unexpected("',' or '" + close + "'");
        }
        at++;
        return c == ',';
    }

    /** Reads a string, its opening quote being the next byte; its content is then {@link #textFrom}. */
    void string() throws BadMessage {
        int i = at + 1;
        textFrom = i;
        escaped = false;
        byte[] b = bytes;
        while (true) {
            byte kind = CLASS[b[i] & 0xff];
            if (kind == PLAIN) {
                i++;
            } else if (kind == QUOTE) {
                textTo = i;
                at = i + 1;
                return;
            } else {
                i = special(i, kind);
            }
        }
    }

    private int special(int i, byte kind) throws BadMessage {
        at = i;
        if (kind == WIDE) {
            int length = Bytes.sequence(bytes, i, to);
            if (length == 0) {
                throw new BadMessage("not UTF-8");
            }
            return i + length;
        }
        if (kind == CONTROL) {
            throw i >= to ? ended() : new BadMessage("not JSON: control character in a string");
        }
        escaped = true;
        int c = bytes[i + 1];
        if (c == 'u') {
            for (int digit = 2; digit < 6; digit++) {
                if (i + digit >= to || Character.digit(bytes[i + digit], 16) < 0) {
                    throw new BadMessage("not JSON: bad \\u escape");
                }
            }
            return i + 6;
        }
        if ("\"\\/bfnrt".indexOf(c) < 0) {
            throw i + 1 >= to ? ended() : new BadMessage("not JSON: bad escape");
        }
        return i + 2;
    }

    /** Reads a number, its first byte being the next; its text is then {@link #textFrom}. */
    void number() throws BadMessage {
        byte[] b = bytes;
        int i = at;
        textFrom = i;
        if (b[i] == '-') {
            i++;
        }
        int first = i;
        i = digits(i);
        if (i == first || b[first] == '0' && i > first + 1) {
            throw unexpected("a value");
        }
        if (b[i] == '.') {
            int fraction = ++i;
            i = digits(i);
            if (i == fraction) {
                throw unexpected("a digit after the dot");
            }
        }
        if (b[i] == 'e' || b[i] == 'E') {
            i++;
            if (b[i] == '+' || b[i] == '-') {
                i++;
            }
            int exponent = i;
            i = digits(i);
            if (i == exponent) {
                throw unexpected("a digit in the exponent");
            }
        }
        textTo = i;
        at = i;
    }

    private int digits(int from) {
        int i = from;
        while (bytes[i] >= '0' && bytes[i] <= '9') {
            i++;
        }
        return i;
    }

    /** Reads {@code true}, {@code false} or {@code null}; gives the kind of {@link Record}. */
    byte literal() throws BadMessage {
        switch (bytes[at]) {
            case 't':
                word("true");
                return Record.TRUE;
            case 'f':
                word("false");
                return Record.FALSE;
            case 'n':
                word("null");
                return Record.NULL;
            default:
                throw unexpected("a value");
        }
    }

    private void word(String word) throws BadMessage {
        for (int i = 0; i < word.length(); i++) {
            if (bytes[at + i] != word.charAt(i)) {
                throw unexpected("a value");
            }
        }
        at += word.length();
    }

    /** Reads any value and forgets it. */
    void skip(int depth) throws BadMessage {
        switch (peek()) {
            case '"':
                string();
                break;
            case '{':
                enter(depth);
                if (peek() == '}') {
                    at++;
                    break;
                }
                do {
                    name();
                    skip(depth + 1);
                } while (more('}'));
                break;
            case '[':
                enter(depth);
                if (peek() == ']') {
                    at++;
                    break;
                }
                do {
                    skip(depth + 1);
                } while (more(']'));
                break;
            case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
                number();
                break;
            default:
                literal();
        }
    }

    /** Reads a member's name and the colon; the name is then {@link #textFrom}. */
    void name() throws BadMessage {
        if (peek() != '"') {
            throw unexpected("a name in quotes");
        }
        string();
        int c = bytes[at];
        if (c == ':') {
            at++;
        } else {
            expect(':');
        }
    }

    /** Consumes the opening bracket of an object or a list at this depth. */
    void enter(int depth) throws BadMessage {
        if (depth >= Decoder.MAX_DEPTH) {
            throw new BadMessage("nested deeper than " + Decoder.MAX_DEPTH);
        }
        at++;
    }

    BadMessage unexpected(String wanted) {
        return at >= to ? ended() : new BadMessage("not JSON: expected " + wanted + " at byte " + (at - from));
    }

    private static BadMessage ended() {
        return new BadMessage("not JSON: ends too early");
    }
}
