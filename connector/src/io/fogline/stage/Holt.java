package io.fogline.stage;

/**
 * FORECAST: Holt's linear method over the means of equal buckets. The level starts at the first
 * bucket that holds records, the trend at the step to the second; a bucket without records is passed
 * over by adding the trend. The forecast is the level after the last bucket plus {@code steps} trends.
 */
record Holt(int column, int steps, long bucketMs, double alpha, double beta) {
    private static final int MOST_BUCKETS = 1_000_000;

    static Holt of(StageSpec.Aggregate aggregate) {
        double[] given = aggregate.parameters();
        Functions.check(aggregate, given.length >= 2 && given.length <= 4, "takes 2 to 4 parameters, not " + given.length);
        Functions.check(aggregate, given[0] >= 1 && given[1] >= 1, "needs steps and a bucket of 1 or more");
        StageSpec.Window window = aggregate.window();
        Functions.check(aggregate, window.kind() == StageSpec.WindowKind.TIME, "needs a time window");
        Functions.check(aggregate, window.length() / given[1] <= MOST_BUCKETS,
                "has more than " + MOST_BUCKETS + " buckets in its window");
        return new Holt(aggregate.column(), (int) given[0], (long) given[1],
                given.length > 2 ? given[2] : 0.5, given.length > 3 ? given[3] : 0.3);
    }

    /** {@code sums} and {@code counts} of the buckets, oldest first. */
    double forecast(double[] sums, double[] counts) {
        double level = Double.NaN;
        double trend = 0;
        int first = -1;
        boolean sloped = false;
        for (int i = 0; i < sums.length; i++) {
            boolean held = counts[i] > 0;
            double mean = held ? sums[i] / counts[i] : Double.NaN;
            if (first < 0) {
                first = held ? i : -1;
                level = mean;
            } else if (!sloped && held) {
                trend = (mean - level) / (i - first);
                level = mean;
                sloped = true;
            } else if (held) {
                double before = level;
                level = alpha * mean + (1 - alpha) * (level + trend);
                trend = beta * (level - before) + (1 - beta) * trend;
            } else {
                level += trend;
            }
        }
        return level + steps * trend;
    }
}
