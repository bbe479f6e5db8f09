package io.fogline.log;

import java.nio.file.Path;

/** A file does not hold what was written to it; the position is where that shows. */
public final class LogDamaged extends LogException {
    private final long position;

    public LogDamaged(Path file, long position, String reason) {
        super(file + " is damaged at position " + position + ": " + reason);
        this.position = position;
    }

    public long position() {
        return position;
    }
}
