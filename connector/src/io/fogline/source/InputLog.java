package io.fogline.source;

import io.fogline.log.Committed;
import io.fogline.log.Segments;
import io.fogline.log.Splits;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.SortedMap;
import java.util.TreeMap;

/** The log behind option {@code path}. It may come into being later; until then it is empty. */
final class InputLog implements Store {
    /** The log as the one file of its store. */
    static final String NAME = "log";

    private final Path folder;
    private final boolean tail;
    private final long start;
    private final Committed committed;

    InputLog(SourceOptions options) {
        folder = Path.of(options.path());
        tail = options.tail();
        start = options.start();
        committed = new Committed(folder);
    }

    @Override
    public Listing list() {
        try {
            return new Listing(at(committed.read()), !tail);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + folder, e);
        }
    }

    @Override
    public SortedMap<String, Long> firsts() {
        try {
            return at(Segments.first(folder, committed.read()));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot list " + folder, e);
        }
    }

    @Override
    public SortedMap<String, Long> begins() {
        try {
            long end = committed.read();
            return at(Math.max(Segments.first(folder, end), Math.min(start, end)));
        } catch (IOException e) {
            throw new UncheckedIOException("cannot list " + folder, e);
        }
    }

    private static SortedMap<String, Long> at(long position) {
        SortedMap<String, Long> positions = new TreeMap<>();
        positions.put(NAME, position);
        return positions;
    }

    @Override
    public String pathOf(String file) {
        return folder.toString();
    }

    @Override
    public long boundary(String file, long from, long wanted, long size, boolean complete) throws IOException {
        return Splits.at(folder, from, wanted, size);
    }
}
