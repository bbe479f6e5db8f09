package io.fogline.log;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;

/** Files that are there whole or not at all, also after a power failure. */
final class Disk {
    private Disk() {}

    /** Everything written to this file, or every entry of this folder, is on disk. */
    static void sync(Path path) throws IOException {
        try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
            channel.force(true);
        }
    }

    /** A reader of {@code path} sees the old text or the new one, never a part. */
    static void replace(Path path, String text) throws IOException {
        String name = "." + path.getFileName() + "." + ProcessHandle.current().pid() + ".java.new";
        Path made = path.resolveSibling(name);
        try {
            Files.writeString(made, text, StandardCharsets.UTF_8);
            sync(made);
            Files.move(made, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        } finally {
            Files.deleteIfExists(made);
        }
        sync(path.getParent());
    }
}
