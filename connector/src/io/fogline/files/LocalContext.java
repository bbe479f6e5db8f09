package io.fogline.files;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;

/**
 * {@link LocalFiles} for Hadoop's newer interface, through which Spark writes checkpoints. Unlike there,
 * every file gets a checksum file beside it, {@code .<name>.crc}, and is checked when it is read: a
 * damaged checkpoint ends the query instead of giving it a wrong position or a wrong state.
 */
public final class LocalContext extends ChecksumFs {
    public LocalContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(new Raw(configuration));
    }

    /** Hadoop's own goes past the checksums. */
    @Override
    public FSDataInputStream open(Path file) throws IOException {
        return open(file, getServerDefaults(file).getFileBufferSize());
    }

    private static final class Raw extends DelegateToFileSystem {
        Raw(Configuration configuration) throws IOException, URISyntaxException {
            super(URI.create("file:///"), new RawLocalFiles(), configuration, "file", false);
        }

        @Override
        public int getUriDefaultPort() {
            return -1;
        }

        @Override
        public boolean isValidName(String name) {
            return true;
        }
    }
}
