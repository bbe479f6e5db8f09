package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Record;
import io.fogline.decode.Records;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Replays at a multiple of real time: a message is due when as much time has passed since the first
 * one, times the speed, as lies between their event times. A message whose time cannot be read is
 * due at once. Messages never overtake each other.
 */
final class Pacer {
    private final SourceOptions options;
    private final Store files;
    private final Records records;
    private long begun;
    private long firstTime = Record.NO_TIME;
    private long nextTime = Record.NO_TIME;

    Pacer(SourceOptions options, Store files) {
        this.options = options;
        this.files = files;
        this.records = new Records(options.layout().slots());
    }

    /** The positions up to which everything between {@code start} and {@code end} is due at {@code now} (µs). */
    SortedMap<String, Long> until(SortedMap<String, Long> start, SortedMap<String, Long> end, long now) {
        if (nextTime != Record.NO_TIME && nextTime > due(now)) {
            return start;
        }
        nextTime = Record.NO_TIME;
        SortedMap<String, Long> reached = new TreeMap<>(start);
        for (Map.Entry<String, Long> file : end.entrySet()) {
            long from = start.getOrDefault(file.getKey(), 0L);
            if (from < file.getValue()) {
                long to = until(new Slice(file.getKey(), files.pathOf(file.getKey()), from, file.getValue()), now);
                if (to > from) {
                    reached.put(file.getKey(), to);
                }
                if (to < file.getValue()) {
                    return reached;
                }
            }
        }
        return reached;
    }

    private long until(Slice slice, long now) {
        try (SliceMessages source = new SliceMessages(slice, options)) {
            while (source.next()) {
                long time = timeOf(source, now);
                if (time == Record.NO_TIME) {
                    continue;
                }
                if (firstTime == Record.NO_TIME) {
                    firstTime = time;
                    begun = now;
                }
                if (time > due(now)) {
                    nextTime = time;
                    return source.current().position();
                }
            }
            return slice.end();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + slice.path(), e);
        }
    }

    private long due(long now) {
        return firstTime + (long) ((now - begun) * options.speed());
    }

    private long timeOf(SliceMessages source, long now) throws IOException {
        Messages message = source.current();
        records.clear(now);
        try {
            if (message.problem() != null) {
                return Record.NO_TIME;
            }
            source.decoder().decode(message.bytes(), message.from(), message.to(), records);
            EventTimes.set(records, options);
        } catch (BadMessage | RuntimeException e) {
            return Record.NO_TIME; // The reader of the batch tells what is wrong with it.
        }
        return records.size() == 0 ? Record.NO_TIME : records.get(0).ownTime();
    }
}
