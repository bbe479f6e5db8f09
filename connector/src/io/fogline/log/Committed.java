package io.fogline.log;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;

/**
 * The position up to which everything is on disk and may be read. Made to be asked again and again:
 * the file stays open, and an interrupted thread does not close it.
 */
public final class Committed implements AutoCloseable {
    static final String NAME = "committed";
    private static final long HIGHEST = 1L << 62;

    private final Path file;
    private final byte[] bytes = new byte[Long.BYTES];
    private RandomAccessFile open;

    public Committed(Path folder) {
        file = folder.resolve(NAME);
    }

    /** The position now; 0 as long as the log does not exist. */
    public synchronized long read() throws IOException {
        if (open == null) {
            try {
                open = new RandomAccessFile(file.toFile(), "r");
            } catch (FileNotFoundException e) {
                return 0;
            }
        }
        return Math.max(load(open, bytes), 0);
    }

    /** What the file says, -1 when it holds no position. */
    static long load(RandomAccessFile file, byte[] bytes) throws IOException {
        file.seek(0);
        if (file.read(bytes, 0, Long.BYTES) != Long.BYTES) {
            return -1;
        }
        long position = Format.i64(bytes, 0);
        return position >= 0 && position < HIGHEST ? position : -1;
    }

    static void store(RandomAccessFile file, long position) throws IOException {
        byte[] bytes = new byte[Long.BYTES];
        Format.put64(bytes, 0, position);
        file.seek(0);
        file.write(bytes);
    }

    @Override
    public synchronized void close() throws IOException {
        if (open != null) {
            open.close();
            open = null;
        }
    }
}
