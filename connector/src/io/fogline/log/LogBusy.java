package io.fogline.log;

/** Another writer has the log open. */
public final class LogBusy extends LogException {
    public LogBusy(String message) {
        super(message);
    }
}
