package io.fogline.source;

import io.fogline.decode.Record;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** The streams of one query, on the driver: what each knows of its event time, for the silent ones. */
final class ClockGroup {
    /**
     * What a stream knows, in microseconds or {@link Record#NO_TIME}.
     *
     * @param time its event time
     * @param newest that of its newest record
     * @param own where its event time would be if it went on since then
     * @param idle whether it has been silent for so long that nobody waits for it
     */
    record Hand(long time, long newest, long own, boolean idle) {}

    private static final Map<String, ClockGroup> GROUPS = new ConcurrentHashMap<>();

    private final Map<Object, Hand> hands = new HashMap<>();

    private ClockGroup() {}

    /** The group of this name, with one more member, of which nothing is known yet. */
    static ClockGroup join(String name, Object member) {
        return GROUPS.compute(name, (key, known) -> {
            ClockGroup group = known == null ? new ClockGroup() : known;
            group.tell(member, null);
            return group;
        });
    }

    static void leave(String name, Object member) {
        GROUPS.computeIfPresent(name, (key, group) -> group.without(member) ? null : group);
    }

    private synchronized boolean without(Object member) {
        hands.remove(member);
        return hands.isEmpty();
    }

    synchronized void tell(Object member, Hand hand) {
        hands.put(member, hand);
    }

    /**
     * The event time for members that are idle: that of the slowest stream which is not or, where all
     * are, that of the one which is furthest if time has gone on. Not known while a stream that may
     * speak has not spoken yet.
     */
    synchronized long timeOfIdle() {
        long slowest = Long.MAX_VALUE;
        long furthest = Record.NO_TIME;
        for (Hand hand : hands.values()) {
            if (hand == null || !hand.idle() && hand.time() == Record.NO_TIME) {
                return Record.NO_TIME;
            }
            slowest = hand.idle() ? slowest : Math.min(slowest, hand.time());
            furthest = Math.max(furthest, hand.own());
        }
        return slowest == Long.MAX_VALUE ? furthest : slowest;
    }

    /** The event time of the newest record of all. */
    synchronized long newest() {
        return hands.values().stream()
                .mapToLong(hand -> hand == null ? Record.NO_TIME : hand.newest())
                .max().orElse(Record.NO_TIME);
    }
}
