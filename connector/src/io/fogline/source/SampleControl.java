package io.fogline.source;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Sampling fractions that change while queries run, by name. They live on the driver: a batch takes
 * the fraction of the moment it is planned into its offset, so a replay of it uses the same.
 */
public final class SampleControl {
    private static final Map<String, Double> FRACTIONS = new ConcurrentHashMap<>();

    private SampleControl() {}

    /** From the next batch on, streams with this {@code control} keep this fraction (0 to 1). */
    public static void set(String name, double fraction) {
        if (!(fraction >= 0 && fraction <= 1)) {
            throw new IllegalArgumentException("sampling fraction " + fraction + " of " + name + " is not between 0 and 1");
        }
        FRACTIONS.put(name, fraction);
    }

    /** The fraction of this name; 1 where none was set. */
    public static double get(String name) {
        return FRACTIONS.getOrDefault(name, 1.0);
    }
}
