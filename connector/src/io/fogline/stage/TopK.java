package io.fogline.stage;

/** TOP_K: the k largest values, largest first; with labels each says whose it is, ties in order of the label. */
final class TopK implements ListFunction {
    private final int k;
    private final boolean labels;

    TopK(int k, boolean labels) {
        this.k = k;
        this.labels = labels;
    }

    @Override
    public boolean isText() {
        return true;
    }

    @Override
    public String text(Samples sorted) {
        StringBuilder text = new StringBuilder("[");
        int written = 0;
        int end = sorted.size();
        while (end > 0 && written < k) {
            int start = end - 1;
            while (start > 0 && sorted.value(start - 1) == sorted.value(end - 1)) {
                start--;
            }
            for (int i = start; i < end && written < k; i++, written++) {
                text.append(written > 0 ? ", " : "");
                write(sorted, i, text);
            }
            end = start;
        }
        return text.append(']').toString();
    }

    private void write(Samples sorted, int i, StringBuilder text) {
        if (!labels) {
            text.append(Numbers.text(sorted.value(i)));
            return;
        }
        String label = sorted.label(i);
        text.append("{\"keys\": ").append(label == null ? "{}" : label)
                .append(", \"value\": ").append(Numbers.text(sorted.value(i))).append('}');
    }
}
