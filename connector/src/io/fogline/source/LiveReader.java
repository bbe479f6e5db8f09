package io.fogline.source;

import io.fogline.log.Committed;
import java.io.IOException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.streaming.PartitionOffset;
import org.apache.spark.sql.connector.read.streaming.SupportsRealTimeRead;

/**
 * Follows a log in real time: a row is there as soon as its commit is. Looks often while records come
 * and less often while none do. Rejects become visible, and counts are told, every second.
 */
final class LiveReader implements SupportsRealTimeRead<InternalRow> {
    private static final long SHORTEST_WAIT = TimeUnit.MICROSECONDS.toNanos(500);
    private static final long LONGEST_WAIT = TimeUnit.MILLISECONDS.toNanos(10);
    private static final long SHOW_EVERY = TimeUnit.SECONDS.toNanos(1);

    private final Committed committed;
    private final SliceReader reader;
    private final Progress progress;
    private final long ends;
    private long end;
    private long skip;
    private long frame;
    private long rowsOfFrame;
    private long shown = System.nanoTime();
    private final String counts;
    private long taken;

    LiveReader(LivePartition partition, SourceOptions options, int[] output, Progress progress) {
        this.progress = progress;
        ends = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(partition.lengthMs());
        counts = options.counts();
        committed = new Committed(Path.of(options.path()));
        end = partition.position();
        frame = end;
        skip = partition.skip();
        Slice slice = new Slice(InputLog.NAME, options.path(), end, end);
        try {
            reader = SliceReader.live(slice, options, output, partition.context());
        } catch (IOException e) {
            throw new IllegalStateException("cannot read " + options.path(), e);
        }
    }

    @Override
    public boolean next() throws IOException {
        return take() || extend() && take();
    }

    @Override
    public RecordStatus nextWithTimeout(Long timeoutMs) throws IOException {
        long now = System.nanoTime();
        long left = Math.min(ends - now, TimeUnit.MILLISECONDS.toNanos(timeoutMs));
        if (left <= 0) {
            return RecordStatus.newStatusWithoutArrivalTime(false);
        }
        long wait = SHORTEST_WAIT;
        while (!take()) {
            if (extend()) {
                continue;
            }
            if (System.nanoTime() - now >= left || Thread.currentThread().isInterrupted()) {
                return RecordStatus.newStatusWithoutArrivalTime(false);
            }
            LockSupport.parkNanos(wait);
            wait = Math.min(wait + wait / 16, LONGEST_WAIT);
        }
        return RecordStatus.newStatusWithArrivalTimeMs(reader.arrival() / 1000);
    }

    private boolean extend() throws IOException {
        if (System.nanoTime() - shown > SHOW_EVERY) {
            shown = System.nanoTime();
            reader.showRejects(end);
            tellCounts();
        }
        long now = committed.read();
        boolean more = now > end;
        if (more) {
            reader.extend(now);
            end = now;
        }
        return more;
    }

    private void tellCounts() {
        if (counts != null) {
            LiveCounts.running(counts, reader.found(), taken);
        }
    }

    private boolean take() throws IOException {
        while (reader.next()) {
            if (reader.position() != frame) {
                frame = reader.position();
                rowsOfFrame = 0;
            }
            rowsOfFrame++;
            if (skip == 0) {
                taken = System.currentTimeMillis();
                return true;
            }
            skip--;
        }
        frame = end;
        rowsOfFrame = 0;
        return false;
    }

    @Override
    public InternalRow get() {
        return reader.row();
    }

    @Override
    public PartitionOffset getOffset() {
        return new LiveOffset(frame, rowsOfFrame);
    }

    @Override
    public void close() throws IOException {
        committed.close();
        if (progress != null) {
            progress.add(reader.found());
        }
        if (counts != null) {
            tellCounts();
            LiveCounts.ended(counts);
        }
        reader.close();
    }
}
