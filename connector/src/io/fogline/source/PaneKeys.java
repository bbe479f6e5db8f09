package io.fogline.source;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** The cells of one channel, found by the keys of a record without making objects. */
final class PaneKeys {
    private static final JsonFactory JSON = new JsonFactory();

    /** One key with its cells, the newest last. */
    static final class Entry {
        final int hash;
        final byte[] bytes;
        final UTF8String json;
        final List<PaneCell> cells = new ArrayList<>(4);
        private PaneCell recent;

        Entry(int hash, byte[] bytes, UTF8String json) {
            this.hash = hash;
            this.bytes = bytes;
            this.json = json;
        }

        PaneCell cell(PaneSpec spec, long pane) {
            if (recent != null && recent.pane == pane) {
                return recent;
            }
            for (int i = cells.size() - 1; i >= 0; i--) {
                if (cells.get(i).pane == pane) {
                    recent = cells.get(i);
                    return recent;
                }
            }
            recent = new PaneCell(spec, pane);
            cells.add(recent);
            return recent;
        }
    }

    private final List<PaneSpec.Key> keys;
    /** The column of the only key where that is a text, else negative. */
    private final int textColumn;
    private Entry[] table = new Entry[256];
    /** That of records without the only key. */
    private Entry keyless;
    private int size;
    private byte[] probe = new byte[64];
    private int length;

    PaneKeys(List<PaneSpec.Key> keys) {
        this.keys = keys;
        this.textColumn = keys.size() == 1 && !keys.get(0).number() ? keys.get(0).column() : -1;
    }

    /** The entry of the record that is loaded in the columns. */
    Entry entry(Columns columns) {
        return textColumn < 0 ? anyEntry(columns) : columns.isNull(textColumn) ? keyless(columns) : textEntry(columns);
    }

    private Entry keyless(Columns columns) {
        if (keyless == null) {
            keyless = new Entry(0, new byte[0], json(columns));
        }
        return keyless;
    }

    /** One text is looked up where it lies. */
    private Entry textEntry(Columns columns) {
        byte[] text = columns.textAt(textColumn);
        int offset = columns.offsetAt(textColumn);
        int bytes = columns.lengthAt(textColumn);
        int hash = ShortText.hash(text, offset, bytes);
        int at = hash & table.length - 1;
        while (table[at] != null) {
            Entry found = table[at];
            if (found.hash == hash && found.bytes.length == bytes && ShortText.equal(text, offset, found.bytes)) {
                return found;
            }
            at = at + 1 & table.length - 1;
        }
        return add(at, new Entry(hash, Arrays.copyOfRange(text, offset, offset + bytes), json(columns)));
    }

    private Entry anyEntry(Columns columns) {
        length = 0;
        for (int i = 0; i < keys.size(); i++) {
            append(columns, keys.get(i));
        }
        int hash = ShortText.hash(probe, 0, length);
        int at = hash & table.length - 1;
        while (table[at] != null) {
            Entry found = table[at];
            if (found.hash == hash && found.bytes.length == length
                    && Arrays.equals(found.bytes, 0, length, probe, 0, length)) {
                return found;
            }
            at = at + 1 & table.length - 1;
        }
        return add(at, new Entry(hash, Arrays.copyOf(probe, length), json(columns)));
    }

    private Entry add(int at, Entry made) {
        table[at] = made;
        if (++size * 2 > table.length) {
            grow();
        }
        return made;
    }

    Entry[] entries() {
        int at = keyless == null ? 0 : 1;
        Entry[] all = new Entry[size + at];
        if (keyless != null) {
            all[0] = keyless;
        }
        for (Entry entry : table) {
            if (entry != null) {
                all[at++] = entry;
            }
        }
        return all;
    }

    private void append(Columns columns, PaneSpec.Key key) {
        int column = key.column();
        int bytes = columns.isNull(column) ? -1 : key.number() ? 8 : columns.lengthAt(column);
        if (length + 12 + Math.max(bytes, 0) > probe.length) {
            probe = Arrays.copyOf(probe, 2 * (length + 12 + bytes));
        }
        Platform.putInt(probe, Platform.BYTE_ARRAY_OFFSET + length, bytes);
        length += 4;
        if (bytes > 0 && key.number()) {
            Platform.putDouble(probe, Platform.BYTE_ARRAY_OFFSET + length, columns.doubleAt(column));
            length += 8;
        } else if (bytes > 0) {
            System.arraycopy(columns.textAt(column), columns.offsetAt(column), probe, length, bytes);
            length += bytes;
        }
    }

    private void grow() {
        Entry[] old = table;
        table = new Entry[old.length * 2];
        for (Entry entry : old) {
            if (entry != null) {
                int at = entry.hash & table.length - 1;
                while (table[at] != null) {
                    at = at + 1 & table.length - 1;
                }
                table[at] = entry;
            }
        }
    }

    /** The keys as Spark's to_json would write them. */
    private UTF8String json(Columns columns) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (JsonGenerator json = JSON.createGenerator(out)) {
            json.writeStartObject();
            for (PaneSpec.Key key : keys) {
                json.writeFieldName(key.name());
                if (columns.isNull(key.column())) {
                    json.writeNull();
                } else if (key.number()) {
                    json.writeNumber(columns.doubleAt(key.column()));
                } else {
                    json.writeString(new String(columns.textAt(key.column()), columns.offsetAt(key.column()),
                            columns.lengthAt(key.column()), StandardCharsets.UTF_8));
                }
            }
            json.writeEndObject();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return UTF8String.fromBytes(out.toByteArray());
    }
}
