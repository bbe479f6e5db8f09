package io.fogline.source;

import java.io.Closeable;
import java.io.IOException;
import java.io.RandomAccessFile;

/** A file's bytes up to a limit, read in blocks, forward or backward, at any position. */
final class ByteWindow implements Closeable {
    private static final int BLOCK = 1 << 16;

    private final RandomAccessFile file;
    private final long limit;
    private final byte[] block = new byte[BLOCK];
    private long blockStart;
    private int blockLength;

    ByteWindow(String path, long limit) throws IOException {
        this.file = new RandomAccessFile(path, "r");
        this.limit = limit;
    }

    long limit() {
        return limit;
    }

    /** The byte at a position (0 to 255), or -1 at the limit and behind it. */
    int at(long position) throws IOException {
        long index = position - blockStart;
        if (index >= 0 && index < blockLength) {
            return block[(int) index] & 0xff;
        }
        return position < limit ? load(position) : -1;
    }

    private int load(long position) throws IOException {
        blockStart = position - position % BLOCK;
        blockLength = 0;
        file.seek(blockStart);
        int wanted = (int) Math.min(BLOCK, limit - blockStart);
        while (blockLength < wanted) {
            int read = file.read(block, blockLength, wanted - blockLength);
            if (read < 0) {
                throw new IOException("a file is shorter than it was: it must not change while it is read");
            }
            blockLength += read;
        }
        return block[(int) (position - blockStart)] & 0xff;
    }

    /** Copies bytes into an array. */
    void read(long position, byte[] target, int offset, int length) throws IOException {
        long index = position - blockStart;
        if (index >= 0 && index + length <= blockLength) {
            System.arraycopy(block, (int) index, target, offset, length);
            return;
        }
        file.seek(position);
        file.readFully(target, offset, length);
    }

    @Override
    public void close() throws IOException {
        file.close();
    }
}
