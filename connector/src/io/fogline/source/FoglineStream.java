package io.fogline.source;

import io.fogline.decode.Record;
import io.fogline.log.Heard;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxBytes;
import org.apache.spark.sql.connector.read.streaming.ReportsSourceMetrics;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeMode;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;

/**
 * A read in micro-batches. A batch is a function of its two offsets and the files' content, so a
 * batch that Spark runs again after a failure gives the same rows, rejects and counts. Files that do
 * not grow ({@code tail} off) are looked at once, when the stream starts.
 */
final class FoglineStream
        implements MicroBatchStream, SupportsTriggerAvailableNow, SupportsRealTimeMode, ReportsSourceMetrics {
    /** How much longer a real-time batch may last than the one before it. */
    private static final double GROWTH = 1.2;

    private final SourceOptions options;
    private final int[] output;
    private final Store files;
    private final Planner planner;
    /** Null when everything may be read at once. */
    private final Pacer pacer;
    private final Progress progress = new Progress();
    /** What came of batches that are done, and the listing that stays as it is, if any. */
    private Progress.Found done = Progress.Found.NOTHING;
    private Store.Listing frozen;
    private SourceOffset lastPlanned;
    /** Where the real-time batch that runs began. */
    private SourceOffset reachedBase;
    private int batchesDone;
    private Store.Listing lastFruitless;
    /** Null where event time moves with records only. */
    private final StreamClock clock;
    private SourceOffset knownAt;
    private long knownNewest;

    FoglineStream(SourceOptions options, int[] output) {
        this.options = options;
        this.output = output;
        this.files = Store.of(options);
        this.planner = new Planner(options, files);
        this.pacer = options.speed() > 0 ? new Pacer(options, files) : null;
        this.frozen = options.tail() ? null : files.list();
        this.clock = options.clock() == null ? null : new StreamClock(options);
        SparkContext.getOrCreate().register(progress);
        if (options.counts() != null) {
            LiveCounts.begin(options.counts());
        }
    }

    @Override
    public Offset initialOffset() {
        return SourceOffset.initial(files.begins());
    }

    @Override
    public Offset deserializeOffset(String json) {
        return SourceOffset.parse(json);
    }

    @Override
    public void prepareForTriggerAvailableNow() {
        frozen = files.list();
    }

    @Override
    public ReadLimit getDefaultReadLimit() {
        return ReadLimit.maxBytes(options.maxBytesPerTrigger());
    }

    @Override
    public Offset latestOffset() {
        throw new UnsupportedOperationException("a read limit is always given");
    }

    @Override
    public Offset latestOffset(Offset startOffset, ReadLimit limit) {
        SourceOffset start = SourceOffset.of(startOffset);
        Heard heard = clock == null ? null : clock.heard();
        Store.Listing listing = frozen == null ? files.list() : frozen;
        if (start.ended() || listing.equals(lastFruitless)) {
            return ticked(start, heard);
        }
        SortedMap<String, Long> end = planner.advance(start.files(), listing, bytes(limit));
        if (pacer != null) {
            end = pacer.until(start.files(), end, System.nanoTime() / 1000);
        }
        boolean ended = options.flush() && listing.complete() && isAll(end, listing);
        if (end.equals(start.files()) && !ended) {
            lastFruitless = pacer == null ? listing : null;
            return ticked(start, heard);
        }
        SortedMap<String, Long> from = new TreeMap<>();
        end.forEach((file, position) -> {
            if (start.position(file) != position) {
                from.put(file, start.position(file));
            }
        });
        long newest = newestBefore(start);
        if (clock != null) {
            clock.speaks(start, newest);
        }
        return new SourceOffset(
                end, from, newest, System.currentTimeMillis(), options.currentFraction(), ended, 0,
                start.clock(), start.ticks());
    }

    /** There are no new records; perhaps time has gone on all the same. */
    private SourceOffset ticked(SourceOffset start, Heard heard) {
        if (clock == null || frozen != null) {
            return start;
        }
        long newest = newestBefore(start);
        long time = clock.next(start, newest, heard);
        return time == Record.NO_TIME ? start : start.ticked(newest, time);
    }

    private static boolean isAll(SortedMap<String, Long> positions, Store.Listing listing) {
        return listing.sizes().entrySet().stream()
                .allMatch(file -> positions.getOrDefault(file.getKey(), 0L) >= file.getValue());
    }

    private static long bytes(ReadLimit limit) {
        if (limit instanceof ReadMaxBytes max) {
            return max.maxBytes();
        }
        long bytes = Long.MAX_VALUE;
        if (limit instanceof CompositeReadLimit composite) {
            for (ReadLimit part : composite.getReadLimits()) {
                bytes = Math.min(bytes, bytes(part));
            }
        }
        return bytes;
    }

    /** The newest event time of all batches up to the one that ends at {@code start}. */
    private long newestBefore(SourceOffset start) {
        if (start.from().isEmpty()) {
            return start.newest();
        }
        if (start.equals(knownAt)) {
            return knownNewest;
        }
        // After a restart the last batch was read by another process: look at its records again.
        boolean known = start.equals(lastPlanned) || options.lateness() < 0;
        long newest = known ? Math.max(done.newest(), progress.total().newest()) : newestIn(start);
        knownAt = start;
        knownNewest = Math.max(start.newest(), newest);
        return knownNewest;
    }

    private long newestIn(SourceOffset batch) {
        long newest = Record.NO_TIME;
        SortedMap<String, Long> end = new TreeMap<>(batch.files());
        end.keySet().retainAll(batch.from().keySet());
        for (List<Slice> slices : planner.split(batch.from(), end)) {
            for (Slice slice : slices) {
                newest = Math.max(newest, newestIn(slice, batch));
            }
        }
        return newest;
    }

    private long newestIn(Slice slice, SourceOffset batch) {
        try (SliceReader reader = new SliceReader(slice, options.withoutRejects(), new int[0], context(batch))) {
            while (reader.next()) {
                continue;
            }
            return reader.found().newest();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + slice.path(), e);
        }
    }

    private BatchContext context(SourceOffset end) {
        long before = Math.max(end.newest(), end.clock());
        boolean some = options.lateness() >= 0 && before != Record.NO_TIME;
        long lateBefore = some ? before - options.lateness() * 1000 : BatchContext.NEVER_LATE;
        return new BatchContext(end.arrival() * 1000, end.fraction(), lateBefore);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset startOffset, Offset endOffset) {
        SourceOffset start = SourceOffset.of(startOffset);
        SourceOffset end = SourceOffset.of(endOffset);
        lastPlanned = end;
        BatchContext context = context(end);
        List<InputPartition> partitions = new ArrayList<>();
        for (List<Slice> slices : planner.split(start.files(), end.files())) {
            partitions.add(new SlicePartition(List.copyOf(slices), context, Record.NO_TIME));
        }
        if (end.ended() && !start.ended()) {
            partitions.add(new SlicePartition(List.of(), context, Rows.END_TIME));
        }
        if (end.ticks() > start.ticks()) {
            partitions.add(new SlicePartition(List.of(), context, end.clock()));
        }
        return partitions.toArray(InputPartition[]::new);
    }

    @Override
    public InputPartition[] planInputPartitions(Offset startOffset) {
        if (!options.log()) {
            throw new UnsupportedOperationException("only a log can be read in real time");
        }
        SourceOffset start = SourceOffset.of(startOffset);
        long position = start.position(InputLog.NAME);
        BatchContext context = new BatchContext(0, options.currentFraction(), BatchContext.NEVER_LATE);
        reachedBase = start;
        return new InputPartition[] {new LivePartition(position, start.skip(), lengthMs(), context)};
    }

    /**
     * How long a real-time batch that begins now may last. Between two of them Spark commits and plans,
     * in code that Java compiles only when it has run some dozen times: a stream that has just begun
     * makes short batches, so that this is over soon. The streams of a query count the same batches.
     */
    private long lengthMs() {
        return options.firstBatch() < 0
                ? Long.MAX_VALUE
                : (long) (options.firstBatch() * Math.pow(GROWTH, batchesDone));
    }

    @Override
    public Offset mergeOffsets(PartitionOffset[] offsets) {
        LiveOffset reached = (LiveOffset) offsets[0];
        return reachedBase.reached(InputLog.NAME, reached.position(), reached.skip());
    }

    @Override
    public PartitionReaderFactory createReaderFactory() {
        return new RowReaderFactory(options, output, progress);
    }

    @Override
    public Map<String, String> metrics(Optional<Offset> latestConsumed) {
        Progress.Found all = done.plus(progress.total());
        return Map.of(
                "lag", Long.toString(latestConsumed.map(at -> lag(SourceOffset.of(at))).orElse(0L)),
                "records", Long.toString(all.records()),
                "bad", Long.toString(all.bad()),
                "late", Long.toString(all.late()),
                "bytes", Long.toString(all.bytes()));
    }

    /** How many bytes there are behind a position. */
    private long lag(SourceOffset at) {
        return files.list().sizes().entrySet().stream()
                .mapToLong(file -> file.getValue() - at.position(file.getKey())).sum();
    }

    @Override
    public void commit(Offset end) {
        done = done.plus(progress.total());
        progress.reset();
        batchesDone++;
    }

    @Override
    public void stop() {
        if (clock != null) {
            clock.leave();
        }
    }
}
