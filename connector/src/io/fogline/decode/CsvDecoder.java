package io.fogline.decode;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code csv}: a message is one line of values between commas (RFC 4180), in quotes where a value
 * holds a comma or a quote (doubled). A line with more or fewer values than the header is bad. An
 * empty value without quotes is null.
 */
public final class CsvDecoder implements Decoder {
    /** What {@link #split} gives for every value; escaped: it holds doubled quotes. */
    private interface Values {
        void add(byte[] bytes, int from, int to, boolean quoted, boolean escaped) throws BadMessage;
    }

    private final int[] slots;

    CsvDecoder(Layout layout, List<String> header) {
        slots = new int[header.size()];
        for (int i = 0; i < slots.length; i++) {
            int entry = layout.root().find(header.get(i));
            slots[i] = entry < 0 ? -1 : layout.root().slot(entry);
        }
    }

    /** The column names in a header line. */
    public static List<String> header(byte[] bytes, int from, int to) throws BadMessage {
        List<String> names = new ArrayList<>();
        split(bytes, from, to, (source, start, end, quoted, escaped) -> {
            String name = new String(source, start, end - start, StandardCharsets.UTF_8);
            names.add(escaped ? name.replace("\"\"", "\"") : name.strip());
        });
        return names;
    }

    @Override
    public void decode(byte[] bytes, int from, int to, Records out) throws BadMessage {
        Record record = out.add();
        int[] column = {0};
        int count = split(bytes, from, to, (source, start, end, quoted, escaped) -> {
            int slot = column[0] < slots.length ? slots[column[0]] : -1;
            column[0]++;
            if (slot >= 0) {
                store(record, slot, source, start, end, quoted, escaped);
            }
        });
        if (count != slots.length) {
            throw new BadMessage("not csv: " + count + " values for " + slots.length + " columns");
        }
    }

    private static void store(Record record, int slot, byte[] bytes, int from, int to, boolean quoted, boolean escaped) {
        if (from == to && !quoted) {
            record.set(slot, Record.NULL);
        } else if (!escaped) {
            record.set(slot, Record.TEXT, bytes, from, to - from);
        } else {
            byte[] target = record.scratch(to - from);
            int start = record.scratchUsed();
            int length = 0;
            for (int i = from; i < to; i++) {
                target[start + length++] = bytes[i];
                i += bytes[i] == '"' ? 1 : 0;
            }
            record.scratchTake(length);
            record.set(slot, Record.TEXT, target, start, length);
        }
    }

    /** Gives every value of a line and returns their number. */
    private static int split(byte[] bytes, int from, int to, Values values) throws BadMessage {
        if (!Bytes.isUtf8(bytes, from, to)) {
            throw new BadMessage("not UTF-8");
        }
        if (Bytes.indexOf(bytes, (byte) 0, from, to) >= 0) {
            throw new BadMessage("not csv: a NUL byte");
        }
        int count = 0;
        int at = from;
        while (true) {
            boolean quoted = at < to && bytes[at] == '"';
            int end = quoted ? closingQuote(bytes, at + 1, to) : endOfValue(bytes, at, to);
            int start = quoted ? at + 1 : at;
            values.add(bytes, start, end, quoted, quoted && Bytes.indexOf(bytes, (byte) '"', start, end) >= 0);
            count++;
            at = quoted ? end + 1 : end;
            if (at == to) {
                return count;
            }
            if (bytes[at] != ',') {
                throw new BadMessage("not csv: text behind a closing quote");
            }
            at++;
        }
    }

    private static int endOfValue(byte[] bytes, int from, int to) {
        int comma = Bytes.indexOf(bytes, (byte) ',', from, to);
        return comma < 0 ? to : comma;
    }

    private static int closingQuote(byte[] bytes, int from, int to) throws BadMessage {
        for (int i = from; i < to; i++) {
            if (bytes[i] == '"') {
                if (i + 1 == to || bytes[i + 1] != '"') {
                    return i;
                }
                i++;
            }
        }
        throw new BadMessage("not csv: a quote is not closed");
    }
}
