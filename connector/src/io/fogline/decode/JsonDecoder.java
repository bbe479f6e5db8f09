package io.fogline.decode;

/**
 * {@code json}: a message is one object, or a list of objects, each of which is a record.
 * {@code ndjson}: a message is one or several lines, each an object and a record. The whole message
 * is checked, asked-for fields or not.
 */
public final class JsonDecoder implements Decoder {
    private final FieldTree root;
    private final boolean lines;
    private final JsonScanner scanner = new JsonScanner();
    private final JsonOutline outline = new JsonOutline();

    private JsonDecoder(Layout layout, boolean lines) {
        this.root = layout.root();
        this.lines = lines;
    }

    public static Decoder json(Layout layout) {
        return new JsonDecoder(layout, false);
    }

    public static Decoder ndjson(Layout layout) {
        return new JsonDecoder(layout, true);
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        if (outline.read(bytes, from, to, out.add()) == to) {
            return;
        }
        out.clear(out.arrival());
        if (lines) {
            lines(bytes, from, to, out);
            return;
        }
        scanner.reset(bytes, from, to);
        int c = scanner.peek();
        if (c == '[') {
            list(out);
            scanner.expectEnd();
        } else {
            object(bytes, from, to, out);
        }
    }

    @Override
    public int ahead(byte[] bytes, int from, int limit, Records out) throws BadMessage {
        return outline.read(bytes, from, limit, out.add());
    }

    private void object(byte[] bytes, int from, int to, Records out) throws BadMessage {
        scanner.reset(bytes, from, to);
        record(scanner.peek(), out, 0);
        scanner.expectEnd();
        outline.learn(bytes, from, to, root, scanner);
    }

    private void lines(byte[] bytes, int from, int to, Records out) throws BadMessage {
        for (int start = from; start < to; ) {
            int newline = Bytes.indexOf(bytes, (byte) '\n', start, to);
            int end = newline < 0 ? to : newline;
            if (!Bytes.isBlank(bytes, start, end)) {
                object(bytes, start, end, out);
            }
            start = end + 1;
        }
    }

    private void list(Records out) throws BadMessage {
        scanner.enter(0);
        if (scanner.peek() == ']') {
            scanner.take();
            return;
        }
        do {
            record(scanner.peek(), out, 1);
        } while (scanner.more(']'));
    }

    private void record(int c, Records out, int depth) throws BadMessage {
        if (c != '{') {
            throw scanner.unexpected("an object");
        }
        object(out.add(), root, depth);
    }

    private void object(Record record, FieldTree tree, int depth) throws BadMessage {
        scanner.enter(depth);
        if (scanner.peek() == '}') {
            scanner.take();
            return;
        }
        do {
            scanner.name();
            int entry = JsonText.find(scanner, tree);
            if (entry < 0) {
                scanner.skip(depth + 1);
            } else {
                member(record, tree, entry, depth + 1);
            }
        } while (scanner.more('}'));
    }

    private void member(Record record, FieldTree tree, int entry, int depth) throws BadMessage {
        int slot = tree.slot(entry);
        FieldTree child = tree.child(entry);
        tree.forgetInside(entry, record);
        if (child != null && scanner.peek() == '{') {
            if (slot >= 0) {
                record.set(slot, Record.OTHER);
            }
            object(record, child, depth);
        } else if (slot >= 0) {
            value(scanner, record, slot, depth);
        } else {
            scanner.skip(depth);
        }
    }

    /** Reads any value into a slot. */
    static void value(JsonScanner scanner, Record record, int slot, int depth) throws BadMessage {
        int c = scanner.peek();
        if (c == '"') {
            scanner.string();
            JsonText.store(scanner, record, slot);
        } else if (c == '-' || c >= '0' && c <= '9') {
            scanner.number();
            record.set(slot, Record.NUMBER, scanner.bytes(), scanner.textFrom(), scanner.textLength());
        } else if (c == '{' || c == '[') {
            scanner.skip(depth);
            record.set(slot, Record.OTHER);
        } else {
            record.set(slot, scanner.literal());
        }
    }
}
