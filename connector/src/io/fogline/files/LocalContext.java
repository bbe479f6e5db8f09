package io.fogline.files;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.DelegateToFileSystem;

/** {@link LocalFiles} for Hadoop's newer interface, through which Spark writes checkpoints. */
public final class LocalContext extends DelegateToFileSystem {
    public LocalContext(URI uri, Configuration configuration) throws IOException, URISyntaxException {
        super(URI.create("file:///"), new RawLocalFiles(), configuration, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
        return -1;
    }
}
