package io.fogline.stage;

import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;

/**
 * OUTLIER_DETECTION(k, r): records with fewer than k others within distance r, by time and value.
 * Outliers that hang together in steps of at most r are a cluster, whose size is told; one that hangs
 * together with no other is isolated, of size 1. Empty text when there are none. Linear in the
 * window once it is sorted.
 */
final class Outliers implements ListFunction {
    private static final DateTimeFormatter ISO =
            DateTimeFormatter.ofPattern("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'").withZone(ZoneOffset.UTC);

    private final double k;
    private final double r;

    Outliers(double k, double r) {
        this.k = k;
        this.r = r;
    }

    @Override
    public boolean isText() {
        return true;
    }

    @Override
    public boolean needsTimes() {
        return true;
    }

    @Override
    public String text(Samples sorted) {
        int[] found = new int[sorted.size()];
        int[] neighbours = new int[sorted.size()];
        int count = find(sorted, found, neighbours);
        return count == 0 ? "" : describe(sorted, count, found, neighbours, sizes(sorted, count, found));
    }

    private int find(Samples sorted, int[] found, int[] neighbours) {
        int count = 0;
        int low = 0;
        int high = 0;
        for (int i = 0; i < sorted.size(); i++) {
            while (sorted.value(i) - sorted.value(low) > r) {
                low++;
            }
            while (high < sorted.size() && sorted.value(high) - sorted.value(i) <= r) {
                high++;
            }
            if (high - low - 1 < k) {
                neighbours[count] = high - low - 1;
                found[count++] = i;
            }
        }
        return count;
    }

    private int[] sizes(Samples sorted, int count, int[] found) {
        int[] sizes = new int[count];
        int start = 0;
        for (int i = 1; i <= count; i++) {
            if (i == count || sorted.value(found[i]) - sorted.value(found[i - 1]) > r) {
                Arrays.fill(sizes, start, i, i - start);
                start = i;
            }
        }
        return sizes;
    }

    private static String describe(Samples sorted, int count, int[] found, int[] neighbours, int[] sizes) {
        int[] order = Order.sorted(count, (a, b) -> {
            int byTime = Long.compare(sorted.time(found[a]), sorted.time(found[b]));
            return byTime != 0 ? byTime : Double.compare(sorted.value(found[a]), sorted.value(found[b]));
        });
        StringBuilder text = new StringBuilder("[");
        for (int i : order) {
            text.append(text.length() > 1 ? ", " : "").append("{\"time\": \"");
            ISO.formatTo(Instant.ofEpochMilli(Math.floorDiv(sorted.time(found[i]), 1000L)), text);
            text.append("\", \"value\": ").append(Numbers.text(sorted.value(found[i])))
                    .append(", \"neighbours\": ").append(neighbours[i])
                    .append(", \"kind\": \"").append(sizes[i] == 1 ? "isolated" : "cluster")
                    .append("\", \"size\": ").append(sizes[i]).append('}');
        }
        return text.append(']').toString();
    }
}
