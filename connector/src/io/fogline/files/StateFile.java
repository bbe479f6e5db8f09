package io.fogline.files;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.CRC32;

/**
 * A small text file whose last line is {@code crc32 xxxxxxxx}, of all that is before it, as
 * {@code fogline.common.state_files} writes it.
 */
public final class StateFile {
    private static final String MARK = "crc32 ";

    private StateFile() {}

    /** The lines before the checksum. Throws {@link IOException} when it is wrong or missing. */
    public static List<String> lines(Path file) throws IOException {
        return text(file).lines().toList();
    }

    /** What is before the checksum. Throws {@link IOException} when it is wrong or missing. */
    public static String text(Path file) throws IOException {
        String text = new String(Files.readAllBytes(file), StandardCharsets.UTF_8);
        int end = Math.max(text.lastIndexOf(MARK), 0);
        if (!sealed(text.substring(0, end)).equals(text)) {
            throw new IOException(file + " is damaged: its checksum is wrong");
        }
        return text.substring(0, end);
    }

    /** A text that ends with a line feed, with its checksum behind it. */
    public static String sealed(String text) {
        CRC32 crc = new CRC32();
        crc.update(text.getBytes(StandardCharsets.UTF_8));
        return text + MARK + String.format("%08x\n", crc.getValue());
    }
}
