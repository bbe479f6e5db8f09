package io.fogline.results;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/**
 * The sorted results of one task: small ones as bytes, others in a file.
 *
 * @param file null where {@code bytes} hold everything
 * @param counts results by insight
 */
record Run(byte[] bytes, String file, Map<String, Long> counts) implements WriterCommitMessage {
    InputStream open() throws IOException {
        return file == null ? new ByteArrayInputStream(bytes) : Files.newInputStream(Path.of(file));
    }

    /** A file that cannot be removed goes with its folder. */
    void remove() {
        if (file != null) {
            Path.of(file).toFile().delete();
        }
    }
}
