package io.fogline.stage;

import java.util.Arrays;

/**
 * The mergeable partials of a pane. Numeric kinds are {@link #width} doubles side by side; merging is
 * associative up to rounding, and a partial over nothing is neutral whichever side it stands on.
 */
enum PartialKind {
    SUM(1), MIN(1), MAX(1), MOMENTS(3), COMOMENTS(6), FIRST(2), LAST(2), VALUES(0), HLL(0),
    /** Comoments of time and value, times in seconds from an origin of their own, which comes last (ms). */
    TIMED(7);

    /** Number of doubles; 0 for kinds that are kept in lists or blobs. */
    final int width;

    PartialKind(int width) {
        this.width = width;
    }

    boolean isNumeric() {
        return width > 0;
    }

    static PartialKind named(String name) {
        for (PartialKind kind : values()) {
            if (kind.name().equalsIgnoreCase(name)) {
                return kind;
            }
        }
        throw new IllegalArgumentException("unknown partial kind '" + name + "'");
    }

    void clear(double[] cell, int at) {
        boolean counted = this == MOMENTS || this == COMOMENTS || this == TIMED;
        Arrays.fill(cell, at, at + width, counted ? 0 : Double.NaN);
    }

    /** Merges the later partial at {@code b[j]} into the earlier one at {@code a[i]}. */
    void merge(double[] a, int i, double[] b, int j) {
        switch (this) {
            case SUM -> a[i] = a[i] != a[i] ? b[j] : b[j] != b[j] ? a[i] : a[i] + b[j];
            case MIN -> a[i] = a[i] != a[i] || b[j] < a[i] ? b[j] : a[i];
            case MAX -> a[i] = a[i] != a[i] || b[j] > a[i] ? b[j] : a[i];
            case MOMENTS -> mergeMoments(a, i, b, j);
            case COMOMENTS -> mergeComoments(a, i, b, j, 6, 0);
            case TIMED -> mergeComoments(a, i, b, j, 7, (b[j + 6] - a[i + 6]) / 1000);
            case FIRST -> mergeTimed(a, i, b, j, -1);
            case LAST -> mergeTimed(a, i, b, j, 1);
            default -> throw new IllegalStateException(this + " is not numeric");
        }
    }

    private static void mergeMoments(double[] a, int i, double[] b, int j) {
        double n = a[i];
        double m = b[j];
        if (!(m > 0)) {
            return;
        }
        if (!(n > 0)) {
            System.arraycopy(b, j, a, i, 3);
            return;
        }
        double delta = b[j + 1] - a[i + 1];
        double share = m / (n + m);
        a[i] = n + m;
        a[i + 1] += delta * share;
        a[i + 2] += b[j + 2] + delta * delta * n * share;
    }

    /** {@code shift} is how much later the origin of b's first variable is. */
    private static void mergeComoments(double[] a, int i, double[] b, int j, int width, double shift) {
        double n = a[i];
        double m = b[j];
        if (!(m > 0)) {
            return;
        }
        if (!(n > 0)) {
            System.arraycopy(b, j, a, i, width);
            return;
        }
        double deltaA = b[j + 1] - a[i + 1] + shift;
        double deltaB = b[j + 2] - a[i + 2];
        double share = m / (n + m);
        a[i] = n + m;
        a[i + 1] += deltaA * share;
        a[i + 2] += deltaB * share;
        a[i + 3] += b[j + 3] + deltaA * deltaA * n * share;
        a[i + 4] += b[j + 4] + deltaB * deltaB * n * share;
        a[i + 5] += b[j + 5] + deltaA * deltaB * n * share;
    }

    private static void mergeTimed(double[] a, int i, double[] b, int j, int sign) {
        if (b[j] != b[j]) {
            return;
        }
        int order = a[i] != a[i] ? 1 : sign * Double.compare(b[j], a[i]);
        if (order == 0) {
            order = sign * Double.compare(b[j + 1], a[i + 1]);
        }
        if (order > 0) {
            a[i] = b[j];
            a[i + 1] = b[j + 1];
        }
    }
}
