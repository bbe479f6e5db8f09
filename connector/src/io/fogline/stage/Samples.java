package io.fogline.stage;

import java.util.Arrays;

/**
 * Values with their rank in the window (a time or a running number), their time in microseconds and,
 * where the channel has them, labels. {@link #merge} keeps the values sorted while a window moves.
 */
final class Samples {
    private static final int SMALL = 8;

    private final boolean timed;
    private final boolean labelled;
    private double[] values = new double[SMALL];
    private long[] ranks = new long[SMALL];
    private long[] times;
    private String[] labels;
    private int size;

    Samples(boolean timed, boolean labelled) {
        this.timed = timed;
        this.labelled = labelled;
        times = new long[timed ? SMALL : 0];
        labels = new String[labelled ? SMALL : 0];
    }

    int size() {
        return size;
    }

    double value(int i) {
        return values[i];
    }

    long rank(int i) {
        return ranks[i];
    }

    /** Microseconds since the epoch. */
    long time(int i) {
        return times[i];
    }

    String label(int i) {
        return labelled ? labels[i] : null;
    }

    void add(double value, long rank, long time, String label) {
        if (size == values.length) {
            resize(size * 2);
        }
        values[size] = value;
        ranks[size] = rank;
        if (timed) {
            times[size] = time;
        }
        if (labelled) {
            labels[size] = label;
        }
        size++;
    }

    private void resize(int room) {
        values = Arrays.copyOf(values, room);
        ranks = Arrays.copyOf(ranks, room);
        times = Arrays.copyOf(times, timed ? room : 0);
        labels = Arrays.copyOf(labels, labelled ? room : 0);
    }

    void add(Samples from, int i) {
        add(from.values[i], from.ranks[i], timed ? from.times[i] : 0, labelled ? from.labels[i] : null);
    }

    void addAll(Samples from) {
        for (int i = 0; i < from.size; i++) {
            add(from, i);
        }
    }

    void clear() {
        size = 0;
        if (labelled) {
            Arrays.fill(labels, null);
        }
    }

    /** Forgets the first ones. */
    void dropFirst(int count) {
        Samples rest = new Samples(timed, labelled);
        for (int i = count; i < size; i++) {
            rest.add(this, i);
        }
        take(rest);
    }

    private void take(Samples other) {
        values = other.values;
        ranks = other.ranks;
        times = other.times;
        labels = other.labels;
        size = other.size;
    }

    private static int compare(Samples a, int i, Samples b, int j) {
        int order = Double.compare(a.values[i], b.values[j]);
        if (order == 0 && a.labelled && a.labels[i] != null && b.labels[j] != null) {
            order = a.labels[i].compareTo(b.labels[j]);
        }
        if (order == 0) {
            order = Long.compare(a.ranks[i], b.ranks[j]);
        }
        return order;
    }

    /** Merges unsorted {@code fresh} ones into these sorted ones and drops all ranks below {@code lowest}. */
    void merge(Samples fresh, long lowest) {
        int[] order = Order.sorted(fresh.size, (i, j) -> compare(fresh, i, fresh, j));
        Samples merged = new Samples(timed, labelled);
        merged.resize(Math.max(SMALL, size + fresh.size));
        int mine = 0;
        int next = 0;
        while (mine < size || next < fresh.size) {
            boolean takeMine = next == fresh.size
                    || mine < size && compare(this, mine, fresh, order[next]) <= 0;
            Samples from = takeMine ? this : fresh;
            int i = takeMine ? mine++ : order[next++];
            if (from.ranks[i] >= lowest) {
                merged.add(from, i);
            }
        }
        take(merged);
    }

    void write(StateWriter out) {
        out.putLong(size);
        out.putDoubles(values, 0, size);
        long base = size > 0 ? ranks[0] : 0;
        out.putLong(base);
        for (int i = 0; i < size; i++) {
            out.putLong(ranks[i] - base);
            if (timed) {
                out.putLong(times[i] - base);
            }
            if (labelled) {
                out.putText(labels[i]);
            }
        }
    }

    void read(StateReader in) {
        size = in.getInt();
        resize(Math.max(SMALL, size));
        in.getDoubles(values, 0, size);
        long base = in.getLong();
        for (int i = 0; i < size; i++) {
            ranks[i] = in.getLong() + base;
            if (timed) {
                times[i] = in.getLong() + base;
            }
            if (labelled) {
                labels[i] = in.getText();
            }
        }
    }
}
