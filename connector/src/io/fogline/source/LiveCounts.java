package io.fogline.source;

import io.fogline.decode.Record;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * What readers in real time have found so far, by name: Spark tells only at the end of a batch, which
 * takes minutes. Known where the reader is, so only if tasks run in the driver's process.
 */
public final class LiveCounts {
    private record Counts(Progress.Found done, Progress.Found running, long latency) {
        static final Counts NOTHING = new Counts(Progress.Found.NOTHING, Progress.Found.NOTHING, 0);
    }

    private static final Map<String, Counts> COUNTS = new ConcurrentHashMap<>();

    private LiveCounts() {}

    /** A query starts: its counts begin at nothing. */
    static void begin(String name) {
        COUNTS.put(name, Counts.NOTHING);
    }

    /** A reader has found so much; the newest of it was taken at {@code taken}, in milliseconds. */
    static void running(String name, Progress.Found found, long taken) {
        COUNTS.computeIfPresent(name, (key, old) -> new Counts(old.done(), found, latency(old, found, taken)));
    }

    /** A reader has ended: the next one of this name begins at nothing. */
    static void ended(String name) {
        COUNTS.computeIfPresent(name, (key, old) ->
                new Counts(old.done().plus(old.running()), Progress.Found.NOTHING, old.latency()));
    }

    private static long latency(Counts old, Progress.Found found, long taken) {
        return found.newest() == Record.NO_TIME ? old.latency() : Math.max(0, taken - found.newest() / 1000);
    }

    /** Records, bad ones, bytes, and the latency in milliseconds, with blanks between; null where nothing is known. */
    public static String read(String name) {
        Counts counts = COUNTS.get(name);
        if (counts == null) {
            return null;
        }
        Progress.Found all = counts.done().plus(counts.running());
        return all.records() + " " + all.bad() + " " + all.bytes() + " " + counts.latency();
    }
}
