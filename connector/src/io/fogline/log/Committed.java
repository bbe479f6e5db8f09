package io.fogline.log;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Path;

/**
 * The position up to which everything is on disk and may be read. Made to be asked again and again:
 * the file stays open, and an interrupted thread does not close it. While it is damaged, what it said
 * before holds: its writer writes it anew.
 */
public final class Committed implements AutoCloseable {
    static final String NAME = "committed";
    private static final long HIGHEST = 1L << 62;

    private static final int SIZE = 20;
    private static final int NUMBERS = 16;
    private static final int TRIES = 3;

    /** The end of what is committed, and how many records were ever written before it. */
    record End(long position, long number) {
        static final End NOTHING = new End(0, 0);
    }

    private final Path folder;
    private final byte[] bytes = new byte[SIZE + 1];
    private RandomAccessFile open;
    private End last = End.NOTHING;

    public Committed(Path folder) {
        this.folder = folder;
    }

    /** The position now; 0 as long as the log does not exist. */
    public long read() throws IOException {
        return end().position();
    }

    synchronized End end() throws IOException {
        if (open == null) {
            try {
                open = new RandomAccessFile(folder.resolve(NAME).toFile(), "r");
            } catch (FileNotFoundException e) {
                return last;
            }
        }
        End end = load(open, bytes);
        if (end == null) {
            Segments.requireCurrent(folder);
        } else {
            last = end;
        }
        return last;
    }

    /** What the file says, null when it holds no end. One that is being written is read again. */
    static End load(RandomAccessFile file) throws IOException {
        return load(file, new byte[SIZE + 1]);
    }

    private static End load(RandomAccessFile file, byte[] bytes) throws IOException {
        for (int i = 0; i < TRIES; i++) {
            file.seek(0);
            End end = decode(bytes, file.read(bytes, 0, bytes.length));
            if (end != null) {
                return end;
            }
        }
        return null;
    }

    private static End decode(byte[] bytes, int size) {
        if (size != SIZE || Format.crc(bytes, 0, NUMBERS) != Format.i32(bytes, NUMBERS)) {
            return null;
        }
        End end = new End(Format.i64(bytes, 0), Format.i64(bytes, Long.BYTES));
        return Math.min(end.position, end.number) >= 0 && Math.max(end.position, end.number) < HIGHEST ? end : null;
    }

    static void store(RandomAccessFile file, End end) throws IOException {
        byte[] bytes = new byte[SIZE];
        Format.put64(bytes, 0, end.position());
        Format.put64(bytes, Long.BYTES, end.number());
        Format.put32(bytes, NUMBERS, Format.crc(bytes, 0, NUMBERS));
        file.seek(0);
        file.write(bytes);
    }

    static void shorten(RandomAccessFile file) throws IOException {
        file.setLength(SIZE);
    }

    @Override
    public synchronized void close() throws IOException {
        if (open != null) {
            open.close();
            open = null;
        }
    }
}
