package io.fogline.log;

import java.nio.file.Path;

/** The wanted position is no longer in the log: retention has removed it. */
public final class LogGone extends LogException {
    public LogGone(Path folder, long position, long first) {
        super(folder + " has no position " + position + " any more: it starts at " + first);
    }
}
