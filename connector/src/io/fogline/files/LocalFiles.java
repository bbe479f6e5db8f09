package io.fogline.files;

import org.apache.hadoop.fs.LocalFileSystem;

/**
 * Hadoop's local file system without processes: without its native library Hadoop starts {@code chmod}
 * and {@code readlink} for every file it makes, tens of milliseconds each. Writes no checksum files,
 * but minds those of checkpoints, which {@link LocalContext} writes.
 */
public final class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new RawLocalFiles());
        setWriteChecksum(false);
    }
}
