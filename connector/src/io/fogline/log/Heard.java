package io.fogline.log;

import io.fogline.files.StateFile;
import java.io.IOException;
import java.nio.file.Path;

/**
 * What the writer of a log tells about silence: up to {@code position} everything is there, and while
 * it listened nothing more has come for {@code quietMs} milliseconds.
 */
public record Heard(long position, long quietMs) {
    static final String NAME = "heard";

    /** What was told last; null where nobody has. */
    public static Heard read(Path folder) {
        try {
            String[] words = StateFile.text(folder.resolve(NAME)).trim().split(" ");
            return words.length == 2 ? new Heard(Long.parseLong(words[0]), Long.parseLong(words[1])) : null;
        } catch (IOException | IllegalArgumentException e) {
            return null;
        }
    }
}
