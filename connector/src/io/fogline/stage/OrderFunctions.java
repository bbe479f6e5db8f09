package io.fogline.stage;

/** MEDIAN, PERCENTILE, MODE and exact DISTINCT: numbers read off the sorted values. */
final class OrderFunctions {
    private OrderFunctions() {}

    /** Linear interpolation between the nearest ranks; {@code percent} from 0 to 100. */
    static ListFunction percentile(double percent) {
        return new ListFunction() {
            @Override
            public double value(Samples sorted) {
                double position = (sorted.size() - 1) * percent / 100;
                int below = (int) Math.floor(position);
                double low = sorted.value(below);
                double part = position - below;
                return part == 0 ? low : low + part * (sorted.value(below + 1) - low);
            }
        };
    }

    /** The most frequent value; of several the smallest. */
    static ListFunction mode() {
        return new ListFunction() {
            @Override
            public double value(Samples sorted) {
                double best = sorted.value(0);
                int longest = 0;
                int run = 0;
                for (int i = 0; i < sorted.size(); i++) {
                    run = i > 0 && sorted.value(i) == sorted.value(i - 1) ? run + 1 : 1;
                    if (run > longest) {
                        longest = run;
                        best = sorted.value(i);
                    }
                }
                return best;
            }
        };
    }

    static ListFunction distinct() {
        return new ListFunction() {
            @Override
            public double value(Samples sorted) {
                int distinct = 1;
                for (int i = 1; i < sorted.size(); i++) {
                    distinct += sorted.value(i) == sorted.value(i - 1) ? 0 : 1;
                }
                return distinct;
            }
        };
    }
}
