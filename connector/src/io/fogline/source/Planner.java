package io.fogline.source;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Decides how far a batch goes and how it is cut into partitions. Both follow from positions and file
 * content alone, so the same offsets give the same partitions.
 */
final class Planner {
    private final Store files;
    private final long splitBytes;

    Planner(SourceOptions options, Store files) {
        this.files = files;
        this.splitBytes = options.splitBytes();
    }

    /** Positions after at most {@code limit} more bytes, rounded up to a whole message. */
    SortedMap<String, Long> advance(SortedMap<String, Long> start, Store.Listing listing, long limit) {
        SortedMap<String, Long> end = new TreeMap<>(start);
        long left = withoutRemnant(start, listing, limit);
        for (Map.Entry<String, Long> file : listing.sizes().entrySet()) {
            if (left <= 0) {
                break;
            }
            long from = start.getOrDefault(file.getKey(), 0L);
            long size = file.getValue();
            if (size < from) {
                throw new IllegalStateException(file.getKey() + " is shorter than what was already read of it");
            }
            if (size > from) {
                long wanted = left > size - from ? size : from + left;
                long to = boundary(file.getKey(), from, wanted, size, listing.complete());
                if (to > from) {
                    end.put(file.getKey(), to);
                    left -= to - from;
                }
            }
        }
        return end;
    }

    /** The limit, or all there is when little would be left over: a small batch costs as much as a large one. */
    private static long withoutRemnant(SortedMap<String, Long> start, Store.Listing listing, long limit) {
        long all = 0;
        for (Map.Entry<String, Long> file : listing.sizes().entrySet()) {
            all += file.getValue() - start.getOrDefault(file.getKey(), 0L);
        }
        return all - limit <= limit / 4 ? Long.MAX_VALUE : limit;
    }

    /** The bytes between two positions, cut into lists of slices of about {@code splitBytes} each. */
    List<List<Slice>> split(SortedMap<String, Long> start, SortedMap<String, Long> end) {
        List<List<Slice>> parts = new ArrayList<>();
        List<Slice> part = new ArrayList<>();
        long room = splitBytes;
        for (Map.Entry<String, Long> file : end.entrySet()) {
            long to = file.getValue();
            for (long from = start.getOrDefault(file.getKey(), 0L); from < to; ) {
                long cut = to - from <= room ? to : boundary(file.getKey(), from, from + room, to, true);
                part.add(new Slice(file.getKey(), files.pathOf(file.getKey()), from, cut));
                room -= cut - from;
                from = cut;
                if (room <= 0) {
                    parts.add(part);
                    part = new ArrayList<>();
                    room = splitBytes;
                }
            }
        }
        if (!part.isEmpty()) {
            parts.add(part);
        }
        return parts;
    }

    private long boundary(String file, long from, long wanted, long size, boolean complete) {
        try {
            return files.boundary(file, from, wanted, size, complete);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + files.pathOf(file), e);
        }
    }
}
