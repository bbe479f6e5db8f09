package io.fogline.log;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** One file of a log; {@code first} is the position of its first byte, where its header stands. */
public record Segment(long first, Path path) {
    static Segment of(Path folder, long first) {
        return new Segment(first, folder.resolve(String.format("%020d.seg", first)));
    }

    /** The position of the first frame. */
    public long frames() {
        return first + Format.HEADER;
    }

    /** The position behind the last byte of the file. */
    public long end() throws IOException {
        return first + Files.size(path);
    }

    boolean hasHeader() throws IOException {
        return Arrays.equals(readHeader(), Format.header(first));
    }

    boolean isOld() throws IOException {
        return Format.isOld(readHeader(), first);
    }

    private byte[] readHeader() throws IOException {
        try (InputStream in = Files.newInputStream(path)) {
            return in.readNBytes(Format.HEADER);
        }
    }
}
