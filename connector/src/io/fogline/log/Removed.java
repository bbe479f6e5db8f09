package io.fogline.log;

import io.fogline.files.StateFile;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The file {@code removed}: up to which position retention may have removed segments, and the number of
 * the record there. What is missing behind that, is damage.
 */
final class Removed {
    private Removed() {}

    /** Where the log begins; at its very beginning when there is no file, or it is damaged. */
    static Committed.End load(Path folder) {
        try {
            String[] words = StateFile.text(folder.resolve("removed")).trim().split(" ");
            return new Committed.End(Long.parseLong(words[0]), Long.parseLong(words[1]));
        } catch (IOException | IllegalArgumentException | IndexOutOfBoundsException e) {
            return Committed.End.NOTHING;
        }
    }
}
