package io.fogline.log;

/** The bytes are not a frame. Never leaves this package. */
final class BadFrame extends Exception {
    BadFrame(String reason) {
        super(reason, null, false, false);
    }
}
