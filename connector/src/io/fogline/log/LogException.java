package io.fogline.log;

import java.io.IOException;

/** A log cannot be read or written; the text names the file or folder to look at. */
public class LogException extends IOException {
    public LogException(String message) {
        super(message);
    }

    public LogException(String message, Throwable cause) {
        super(message, cause);
    }
}
