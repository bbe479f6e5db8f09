package io.fogline.log;

/** There is no space; nothing was written, and the same call works when space returns. */
public final class LogFull extends LogException {
    public LogFull(String message, Throwable cause) {
        super(message, cause);
    }
}
