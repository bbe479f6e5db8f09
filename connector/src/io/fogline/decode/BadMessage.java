package io.fogline.decode;

/**
 * A message that does not decode. The text is the reason a person reads; there is no stack trace,
 * because bad messages are data, not faults, and may come by the million.
 */
public final class BadMessage extends Exception {
    public BadMessage(String reason) {
        super(reason, null, false, false);
    }
}
