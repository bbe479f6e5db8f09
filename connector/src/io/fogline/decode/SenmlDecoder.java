package io.fogline.decode;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/**
 * SenML: packs of RFC 8428 (a list of entries), and the older form {@code {"e": [entries], "bt": …}},
 * whose base fields may follow the entries. Entries of one base name and one time make one record, in
 * the order in which they first appear. A message may start with {@code epoch_ms,}, its arrival time.
 */
public final class SenmlDecoder implements Decoder {
    private static final String[] LABELS = {"bn", "bt", "bv", "bver", "n", "t", "v", "vs", "vb", "vd", "sv"};
    private static final int BASE_NAME = 0;
    private static final int BASE_TIME = 1;
    private static final int BASE_VALUE = 2;
    private static final int VERSION = 3;
    private static final int NAME = 4;
    private static final int TIME = 5;
    private static final int VALUE = 6;
    private static final int LAST = 10;
    /** Times below this (in microseconds) are relative to arrival, as RFC 8428 says. */
    private static final long RELATIVE = (1L << 28) * 1_000_000;
    private static final int NEWEST_VERSION = 10;
    private static final byte[] NO_NAME = {};

    private record Row(String baseName, long time) {}

    private final FieldTree root;
    private final FieldTree labels = new FieldTree();
    private final int entitySlot;
    private final JsonScanner scanner = new JsonScanner();
    private final Record entry = new Record(LABELS.length);
    private final Map<Row, Record> rows = new HashMap<>();
    private Records out;
    private byte[] baseName;
    private long baseTime;
    private double baseValue;
    private Record lastRow;
    private long lastTime;

    SenmlDecoder(Layout layout, String entity) {
        root = layout.root();
        int found = entity == null ? -1 : root.find(entity);
        entitySlot = found < 0 ? -1 : root.slot(found);
        for (int i = 0; i < LABELS.length; i++) {
            labels.setSlot(labels.entry(LABELS[i]), i);
        }
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        this.out = out;
        rows.clear();
        entry.clear();
        baseName = null;
        baseTime = 0;
        baseValue = 0;
        lastRow = null;
        scanner.reset(bytes, afterArrival(bytes, from, to), to);
        int c = scanner.peek();
        if (c == '[') {
            entries(0);
        } else if (c == '{') {
            wrapped();
        } else {
            throw scanner.unexpected("a SenML pack");
        }
        scanner.expectEnd();
    }

    private int afterArrival(byte[] bytes, int from, int to) throws BadMessage {
        int i = from;
        while (i < to && bytes[i] >= '0' && bytes[i] <= '9') {
            i++;
        }
        if (i == from || bytes[i] != ',') {
            return from;
        }
        long arrival = Times.parse(bytes, from, i - from);
        if (arrival == Times.NONE) {
            throw new BadMessage("the arrival time is not a time");
        }
        out.setArrival(arrival);
        return i + 1;
    }

    /** The older form: base fields first, wherever they stand, then the entries. */
    private void wrapped() throws BadMessage {
        scanner.enter(0);
        int list = -1;
        if (scanner.peek() == '}') {
            throw new BadMessage("not SenML: no list e");
        }
        do {
            scanner.name();
            if (isListName()) {
                list = scanner.peek() == '[' ? scanner.position() : -1;
                scanner.skip(1);
            } else {
                label(1);
            }
        } while (scanner.more('}'));
        if (list < 0) {
            throw new BadMessage("not SenML: no list e");
        }
        int end = scanner.position();
        applyBase();
        scanner.seek(list);
        entries(1);
        scanner.seek(end);
    }

    private void entries(int depth) throws BadMessage {
        scanner.enter(depth);
        if (scanner.peek() == ']') {
            scanner.take();
            return;
        }
        do {
            entry.forget();
            if (scanner.peek() != '{') {
                throw scanner.unexpected("an entry");
            }
            scanner.enter(depth + 1);
            if (scanner.peek() == '}') {
                scanner.take();
                continue;
            }
            do {
                scanner.name();
                label(depth + 2);
            } while (scanner.more('}'));
            applyBase();
            apply();
        } while (scanner.more(']'));
    }

    private void label(int depth) throws BadMessage {
        int found = JsonText.find(scanner, labels);
        if (found >= 0) {
            JsonDecoder.value(scanner, entry, labels.slot(found), depth);
            return;
        }
        if (endsWithUnderscore()) {
            throw new BadMessage("not understood: a SenML field whose name ends in _ must be known");
        }
        scanner.skip(depth);
    }

    /** Whether the name that was read is {@code e}, be it as an escape; the same holds below. */
    private boolean isListName() {
        if (!scanner.isEscaped()) {
            return scanner.textLength() == 1 && scanner.bytes()[scanner.textFrom()] == 'e';
        }
        byte[] name = JsonText.copy(scanner);
        return name.length == 1 && name[0] == 'e';
    }

    private boolean endsWithUnderscore() {
        int length = scanner.textLength();
        if (!scanner.isEscaped()) {
            return length > 0 && scanner.bytes()[scanner.textFrom() + length - 1] == '_';
        }
        byte[] name = JsonText.copy(scanner);
        return name[name.length - 1] == '_';
    }

    private void applyBase() throws BadMessage {
        if (entry.has(VERSION) && !(number(VERSION) <= NEWEST_VERSION)) {
            throw new BadMessage("not understood: SenML version above " + NEWEST_VERSION);
        }
        if (entry.has(BASE_NAME)) {
            baseName = text(BASE_NAME, "base name");
            lastRow = null;
        }
        if (entry.has(BASE_TIME)) {
            baseTime = time(BASE_TIME);
        }
        if (entry.has(BASE_VALUE)) {
            baseValue = number(BASE_VALUE);
            if (Double.isNaN(baseValue)) {
                throw new BadMessage("not SenML: the base value is not a number");
            }
        }
    }

    private void apply() throws BadMessage {
        int value = -1;
        for (int slot = VALUE; slot <= LAST && value < 0; slot++) {
            value = entry.has(slot) ? slot : -1;
        }
        if (value < 0 && !entry.has(NAME)) {
            return;
        }
        long sum = baseTime + (entry.has(TIME) ? time(TIME) : 0);
        Record row = row(inRange(sum < RELATIVE ? out.arrival() + sum : sum));
        int slot = nameSlot();
        if (slot < 0 || value < 0) {
            return;
        }
        row.copy(slot, entry, value);
        if (value == VALUE && baseValue != 0 && !Double.isNaN(number(VALUE))) {
            row.setDouble(slot, baseValue + number(VALUE));
        }
    }

    /** The slot of the field that the entry names; without a name it is the one of the base name, "". */
    private int nameSlot() throws BadMessage {
        if (!entry.has(NAME)) {
            return root.slotOf(NO_NAME, 0, 0);
        }
        if (entry.kind(NAME) != Record.TEXT) {
            throw new BadMessage("not SenML: a name is not a string");
        }
        return root.slotOf(entry.source(NAME), entry.offset(NAME), entry.length(NAME));
    }

    private Record row(long time) throws BadMessage {
        if (lastRow != null && time == lastTime) {
            return lastRow;
        }
        Row key = new Row(baseName == null ? null : new String(baseName, StandardCharsets.UTF_8), time);
        Record row = rows.get(key);
        if (row == null) {
            row = out.add();
            row.setOwnTime(time);
            if (entitySlot >= 0 && baseName != null) {
                row.set(entitySlot, Record.TEXT, baseName, 0, baseName.length);
            }
            rows.put(key, row);
        }
        lastRow = row;
        lastTime = time;
        return row;
    }

    private byte[] text(int slot, String what) throws BadMessage {
        if (entry.kind(slot) != Record.TEXT) {
            throw new BadMessage("not SenML: the " + what + " is not a string");
        }
        int offset = entry.offset(slot);
        return Arrays.copyOfRange(entry.source(slot), offset, offset + entry.length(slot));
    }

    private long time(int slot) throws BadMessage {
        return inRange(Times.of(entry, slot));
    }

    private static long inRange(long micros) throws BadMessage {
        if (Times.inRange(micros) == Times.NONE) {
            throw new BadMessage("not SenML: a time is not a time");
        }
        return micros;
    }

    private double number(int slot) {
        byte kind = entry.kind(slot);
        boolean text = kind == Record.NUMBER || kind == Record.TEXT;
        return text ? Numbers.parse(entry.source(slot), entry.offset(slot), entry.length(slot)) : Double.NaN;
    }
}
