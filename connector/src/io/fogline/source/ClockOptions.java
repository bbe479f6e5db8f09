package io.fogline.source;

import java.io.Serializable;

/**
 * How event time moves on without records; in milliseconds.
 *
 * @param group streams of one query that go by one another
 * @param idle the silence after which a stream no longer holds back the others; -1: it always does
 * @param horizon how long after the newest record a window can still be open
 * @param step event time moves on in such steps at least
 */
record ClockOptions(String group, long idle, long horizon, long step) implements Serializable {}
