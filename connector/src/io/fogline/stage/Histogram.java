package io.fogline.stage;

/** HISTOGRAM: equal bins from the smallest to the largest value, the last one closed; one bin if all are equal. */
final class Histogram implements ListFunction {
    private final int bins;

    Histogram(int bins) {
        this.bins = bins;
    }

    @Override
    public boolean isText() {
        return true;
    }

    @Override
    public String text(Samples sorted) {
        double low = sorted.value(0);
        double high = sorted.value(sorted.size() - 1);
        int used = low == high ? 1 : bins;
        StringBuilder text = new StringBuilder("[");
        int next = 0;
        for (int bin = 0; bin < used; bin++) {
            double to = edge(low, high, bin + 1, used);
            int first = next;
            while (next < sorted.size() && (bin == used - 1 || sorted.value(next) < to)) {
                next++;
            }
            text.append(bin > 0 ? ", " : "").append("{\"from\": ").append(Numbers.text(edge(low, high, bin, used)))
                    .append(", \"to\": ").append(Numbers.text(to))
                    .append(", \"count\": ").append(next - first).append('}');
        }
        return text.append(']').toString();
    }

    private static double edge(double low, double high, int edge, int bins) {
        return edge == bins ? high : low + (high - low) * edge / bins;
    }
}
