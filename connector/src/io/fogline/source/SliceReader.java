package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Bytes;
import io.fogline.decode.Field;
import io.fogline.decode.Record;
import io.fogline.decode.Records;
import java.io.Closeable;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;

/**
 * The path of a slice's messages to rows: sample, decode, time, late, filter, write. Every message
 * ends in exactly one of: not sampled, bad, or records, each of which is late, filtered or a row.
 */
final class SliceReader implements Closeable {
    private final Slice slice;
    private final SourceOptions options;
    private final BatchContext context;
    private final SliceMessages source;
    private final Messages messages;
    private Rejects rejects;
    private final Records records;
    private final Columns columns;
    private final Filter filter;
    private final Rows rows;
    private final double kept;
    private final boolean errorRows;
    private final boolean needsHash;
    private final boolean needsRaw;
    private final boolean needsMessage;
    /** Whether nothing of a message is needed but its records. */
    private final boolean plain;
    private int nextRecord;
    private UnsafeRow row;
    private long hash;
    private byte[] raw;
    private long good;
    private long bad;
    private long late;
    private long newest = Record.NO_TIME;
    private long newestRow = Record.NO_TIME;
    private boolean finished;
    private final boolean live;
    private long liveEnd;

    SliceReader(Slice slice, SourceOptions options, int[] output, BatchContext context) throws IOException {
        this(slice, options, output, context, false);
    }

    /** A reader of a log whose end moves: what it rejects is kept when it is closed. */
    static SliceReader live(Slice slice, SourceOptions options, int[] output, BatchContext context) throws IOException {
        return new SliceReader(slice, options, output, context, true);
    }

    private SliceReader(Slice slice, SourceOptions options, int[] output, BatchContext context, boolean live)
            throws IOException {
        this.live = live;
        this.liveEnd = slice.end();
        this.slice = slice;
        this.options = options;
        this.context = context;
        this.source = new SliceMessages(slice, options);
        this.messages = source.current();
        this.rejects = new Rejects(options.rejects(), options.stream(), slice);
        this.records = new Records(options.layout().slots());
        this.columns = new Columns(options.layout(), options.fields());
        this.filter = options.newFilter();
        this.rows = new Rows(columns, options.fields(), output, context.fraction());
        this.kept = options.controlDrops() ? context.fraction() : options.sample();
        this.errorRows = options.wantsErrors();
        this.needsHash = rows.writes(Field.Type.HASH);
        this.needsRaw = rows.writes(Field.Type.RAW);
        this.needsMessage = rows.writes(Field.Type.PAYLOAD) || rows.writes(Field.Type.TOPIC);
        this.plain = kept >= 1 && !(errorRows || needsHash || needsRaw || needsMessage);
    }

    /** Moves to the next row; false at the end of the slice, when all its rejects are kept. */
    boolean next() throws IOException {
        while (true) {
            while (nextRecord < records.size()) {
                if (accept(nextRecord++)) {
                    return true;
                }
            }
            if (decodeAhead()) {
                continue;
            }
            if (!source.next()) {
                if (!live) {
                    rejects.finish();
                    finished = true;
                }
                return false;
            }
            if (decodeMessage()) {
                return true;
            }
        }
    }

    /** More is committed in the log: reading goes on up to {@code end}. */
    void extend(long end) throws IOException {
        ((LogMessages) messages).extend(end);
        liveEnd = end;
    }

    /** Lets everyone see what was rejected up to {@code end}, where this reader has come to. */
    void showRejects(long end) throws IOException {
        rejects.finish();
        rejects = new Rejects(options.rejects(), options.stream(), new Slice(slice.file(), slice.path(), end, end));
    }

    /** Where the message of the current row is. */
    long position() {
        return messages.position();
    }

    /** When the message of the current row came, in microseconds. */
    long arrival() {
        return messages.arrival(context.arrival());
    }

    /** The record of the current row. */
    Columns columns() {
        return columns;
    }

    UnsafeRow row() {
        return row;
    }

    /** What was found in the slice so far. */
    Progress.Found found() {
        long end = live ? liveEnd : finished ? slice.end() : slice.start();
        return new Progress.Found(slice.id(), good, bad, late, end - slice.start(), newest);
    }

    /** The newest time, where no row told it: the filter left it out. */
    long hidden() {
        return newest > newestRow ? newest : Record.NO_TIME;
    }

    /** Fills {@link #records} with the next message where that needs no look at it before; else false. */
    private boolean decodeAhead() throws IOException {
        if (!plain || !moveAhead()) {
            return false;
        }
        try {
            EventTimes.set(records, options);
            good += records.size();
        } catch (BadMessage e) {
            isBad(e.getMessage());
        }
        return true;
    }

    private boolean moveAhead() {
        records.clear(context.arrival());
        nextRecord = 0;
        try {
            return messages.next(source.decoder(), records);
        } catch (BadMessage | RuntimeException e) {
            // The general way finds the same, and tells of it.
            records.clear(context.arrival());
            return false;
        }
    }

    /** Fills {@link #records}; true when the message is bad and that is a row. */
    private boolean decodeMessage() throws IOException {
        records.clear(messages.arrival(context.arrival()));
        nextRecord = 0;
        if (!Sample.keeps(kept, messages.bytes(), messages.from(), messages.to(), options.sampleSeed())) {
            return false;
        }
        hash = needsHash ? Sample.hash(messages.bytes(), messages.from(), messages.to(), 0) : 0;
        raw = needsRaw ? raw() : null;
        if (needsMessage) {
            rows.message(messages.topic(), messages.bytes(), messages.from(), messages.to());
        }
        try {
            if (messages.problem() != null) {
                throw new BadMessage(messages.problem());
            }
            source.decoder().decode(messages.bytes(), messages.from(), messages.to(), records);
            EventTimes.set(records, options);
            good += records.size();
            return false;
        } catch (BadMessage e) {
            return isBad(e.getMessage());
        } catch (RuntimeException e) {
            // A fault in a decoder must cost one message, not the query: a replay would fail again.
            return isBad("the decoder failed: " + e);
        }
    }

    private boolean isBad(String reason) throws IOException {
        records.clear(context.arrival());
        bad++;
        rejects.add("bad", reason, messages);
        if (errorRows) {
            row = rows.bad(reason, Sample.hash(hash, 0), raw);
        }
        return errorRows;
    }

    private boolean accept(int index) throws IOException {
        Record record = records.get(index);
        long time = record.ownTime();
        if (time < context.lateBefore()) {
            late++;
            String reason = "older than the newest record of earlier batches by more than " + options.lateness() + " ms";
            rejects.add("late", reason, messages);
            return false;
        }
        if (time > newest) {
            newest = time;
        }
        columns.load(record, time);
        if (filter != null && filter.test(columns) != Filter.TRUE) {
            return false;
        }
        newestRow = Math.max(newestRow, time);
        row = rows.record(needsHash ? Sample.hash(hash, index) : 0, raw);
        return true;
    }

    /** The message as text: base64 where the format is binary. */
    private byte[] raw() {
        byte[] bytes = Arrays.copyOfRange(messages.bytes(), messages.from(), messages.to());
        if (options.format().equals("cbor")) {
            return Base64.getEncoder().encode(bytes);
        }
        return Bytes.isUtf8(bytes, 0, bytes.length)
                ? bytes
                : new String(bytes, StandardCharsets.UTF_8).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public void close() throws IOException {
        try {
            if (live) {
                rejects.finish();
            }
            rejects.close();
        } finally {
            source.close();
        }
    }
}
