package io.fogline.stage;

/** DIFF, EWMA, PEWMA and KALMAN. */
final class Filters {
    private static final double DENSITY_AT_0 = 1 / Math.sqrt(2 * Math.PI);

    private Filters() {}

    private abstract static class Filter implements OrderedFunction {
        private final int width;

        Filter(int width) {
            this.width = width;
        }

        @Override
        public int width() {
            return width;
        }

        @Override
        public double value(double[] state) {
            return state[0];
        }
    }

    /** The value minus the one before; NaN for the first. */
    static OrderedFunction difference() {
        return new Filter(2) {
            @Override
            public void step(double[] state, double value, boolean first) {
                state[0] = value - state[1];
                state[1] = value;
            }
        };
    }

    /** s = a x + (1 - a) s, starting at the first value. */
    static OrderedFunction average(double a) {
        return new Filter(1) {
            @Override
            public void step(double[] state, double value, boolean first) {
                state[0] = first ? value : a * value + (1 - a) * state[0];
            }
        };
    }

    /**
     * Probabilistic EWMA (Carter and Streilein, 2012): the past weighs (1 - a)(1 - b p), where p is the
     * standard normal density of the value, standardised by the mean and variance so far, so that the
     * weight of an unlikely value falls to a. It starts at the first value with variance 0; while the
     * variance is 0, p is that of 0 for a value equal to the mean, and 0 for any other.
     */
    static OrderedFunction probabilistic(double a, double b) {
        return new Filter(2) {
            @Override
            public void step(double[] state, double value, boolean first) {
                if (first) {
                    state[0] = value;
                    state[1] = 0;
                    return;
                }
                double away = value - state[0];
                double past = (1 - a) * (1 - b * density(away, state[1]));
                state[0] += (1 - past) * away;
                state[1] = past * (state[1] + (1 - past) * away * away);
            }
        };
    }

    private static double density(double away, double variance) {
        if (variance > 0) {
            return DENSITY_AT_0 * Math.exp(-away * away / (2 * variance));
        }
        return away == 0 ? DENSITY_AT_0 : 0;
    }

    /** One-dimensional random walk with process noise q and measurement noise r. */
    static OrderedFunction kalman(double q, double r) {
        return new Filter(2) {
            @Override
            public void step(double[] state, double value, boolean first) {
                if (first) {
                    state[0] = value;
                    state[1] = r;
                    return;
                }
                double variance = state[1] + q;
                double gain = variance + r > 0 ? variance / (variance + r) : 1;
                state[0] += gain * (value - state[0]);
                state[1] = variance * (1 - gain);
            }
        };
    }
}
