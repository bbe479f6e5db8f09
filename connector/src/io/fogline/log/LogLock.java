package io.fogline.log;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Set;

/**
 * One writer per log, across processes (also those of Python) and within this one. Such locks belong
 * to the process and are lost when any file handle of the lock file is closed, so a second writer in
 * this process is turned away before it opens the file.
 */
final class LogLock implements AutoCloseable {
    private static final Set<Path> HELD = new HashSet<>();

    private final Path key;
    private final RandomAccessFile file;

    LogLock(Path folder) throws IOException {
        key = folder.toRealPath();
        synchronized (HELD) {
            if (!HELD.add(key)) {
                throw new LogBusy("this process already writes the log " + folder);
            }
            try {
                file = locked(folder);
            } catch (IOException | RuntimeException e) {
                HELD.remove(key);
                throw e;
            }
        }
    }

    private static RandomAccessFile locked(Path folder) throws IOException {
        RandomAccessFile file = new RandomAccessFile(folder.resolve("lock").toFile(), "rw");
        if (file.getChannel().tryLock() == null) {
            file.close();
            throw new LogBusy("another process writes the log " + folder);
        }
        return file;
    }

    @Override
    public void close() throws IOException {
        synchronized (HELD) {
            if (HELD.remove(key)) {
                file.close();
            }
        }
    }
}
