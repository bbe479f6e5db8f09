package io.fogline.sink;

import io.fogline.files.StateFile;
import java.io.IOException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Set;

/**
 * The logs that a query must not write to: the lines of a file, which may change while the query runs.
 * Without the file, or without its name, there are none.
 */
final class Muted {
    private static final long FRESH_NANOS = 100_000_000;

    private final String file;
    private Set<String> logs;
    private long readAt;

    Muted(String file) {
        this.file = file;
    }

    boolean has(String log) throws IOException {
        long now = System.nanoTime();
        if (logs == null || now - readAt > FRESH_NANOS) {
            logs = read();
            readAt = now;
        }
        return logs.contains(log);
    }

    private Set<String> read() throws IOException {
        if (file == null) {
            return Set.of();
        }
        try {
            return Set.copyOf(StateFile.lines(Path.of(file)));
        } catch (NoSuchFileException e) {
            return Set.of();
        }
    }
}
