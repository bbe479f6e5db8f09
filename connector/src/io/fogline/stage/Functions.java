package io.fogline.stage;

import java.util.Map;
import java.util.function.Function;

/** The table of functions: what each name means and how many parameters it takes. */
final class Functions {
    /** A function's parameter count, from {@code least} to {@code most}, and how it is made from them. */
    private record Entry<F>(int least, int most, Function<double[], F> make) {}

    private static final double HUGE = Double.MAX_VALUE;

    private static final Map<String, Entry<NumericFunction>> NUMERIC = Map.ofEntries(
            Map.entry("COUNT", plain(BasicFunctions.count())),
            Map.entry("SUM", plain(BasicFunctions.sum())),
            Map.entry("AVG", plain(BasicFunctions.mean())),
            Map.entry("MIN", plain(BasicFunctions.extreme(PartialKind.MIN))),
            Map.entry("MAX", plain(BasicFunctions.extreme(PartialKind.MAX))),
            Map.entry("FIRST", plain(BasicFunctions.edge(PartialKind.FIRST))),
            Map.entry("LAST", plain(BasicFunctions.edge(PartialKind.LAST))),
            Map.entry("GEOMETRIC_MEAN", plain(BasicFunctions.geometricMean())),
            Map.entry("VARIANCE", plain(MomentFunctions.variance())),
            Map.entry("SDEV", plain(MomentFunctions.deviation())),
            Map.entry("CORRELATION", plain(MomentFunctions.correlation())),
            Map.entry("SLOPE", plain(MomentFunctions.slope())),
            Map.entry("HT_AVG", sampled(SampledFunctions.Estimate.AVG, SampledFunctions.Part.VALUE, 0)),
            Map.entry("HT_SUM", sampled(SampledFunctions.Estimate.SUM, SampledFunctions.Part.VALUE, 0)),
            Map.entry("HT_COUNT", sampled(SampledFunctions.Estimate.COUNT, SampledFunctions.Part.VALUE, 0)),
            Map.entry("HT_AVG_ERROR", sampled(SampledFunctions.Estimate.AVG, SampledFunctions.Part.ERROR, 1)),
            Map.entry("HT_SUM_ERROR", sampled(SampledFunctions.Estimate.SUM, SampledFunctions.Part.ERROR, 1)),
            Map.entry("HT_COUNT_ERROR", sampled(SampledFunctions.Estimate.COUNT, SampledFunctions.Part.ERROR, 1)),
            Map.entry("HT_AVG_FRACTION", sampled(SampledFunctions.Estimate.AVG, SampledFunctions.Part.FRACTION, 2)),
            Map.entry("HT_SUM_FRACTION", sampled(SampledFunctions.Estimate.SUM, SampledFunctions.Part.FRACTION, 2)),
            Map.entry("HT_COUNT_FRACTION", sampled(SampledFunctions.Estimate.COUNT, SampledFunctions.Part.FRACTION, 2)));

    private static final Map<String, Entry<ListFunction>> LISTS = Map.of(
            "MEDIAN", new Entry<>(0, 0, given -> OrderFunctions.percentile(50)),
            "PERCENTILE", new Entry<>(1, 1, given -> OrderFunctions.percentile(within(given[0], 0, 100))),
            "MODE", new Entry<>(0, 0, given -> OrderFunctions.mode()),
            "DISTINCT", new Entry<>(0, 0, given -> OrderFunctions.distinct()),
            "HISTOGRAM", new Entry<>(1, 1, given -> new Histogram((int) within(given[0], 1, 100_000))),
            "TOP_K", new Entry<>(1, 1, given -> new TopK((int) within(given[0], 1, Integer.MAX_VALUE), false)),
            "OUTLIER_DETECTION", new Entry<>(2, 2, given -> new Outliers(given[0], within(given[1], 0, HUGE))));

    private static final Map<String, Entry<OrderedFunction>> ORDERED = Map.of(
            "DIFF", new Entry<>(0, 0, given -> Filters.difference()),
            "EWMA", new Entry<>(1, 1, given -> Filters.average(within(given[0], 0, 1))),
            "PEWMA", new Entry<>(1, 2, given -> Filters.probabilistic(
                    within(given[0], 0, 1), given.length > 1 ? within(given[1], 0, 1) : 1)),
            "KALMAN", new Entry<>(2, 2, given -> Filters.kalman(
                    within(given[0], 0, HUGE), within(given[1], 0, HUGE))));

    private static final Map<String, String> RUNNING = Map.of(
            "RUNNING_COUNT", "COUNT", "RUNNING_MEAN", "AVG", "RUNNING_MIN", "MIN", "RUNNING_MAX", "MAX",
            "RUNNING_SDEV", "SDEV");

    private Functions() {}

    private static Entry<NumericFunction> plain(NumericFunction function) {
        return new Entry<>(0, 0, parameters -> function);
    }

    private static Entry<NumericFunction> sampled(
            SampledFunctions.Estimate estimate, SampledFunctions.Part part, int parameters) {
        return new Entry<>(parameters, parameters, values -> SampledFunctions.of(estimate, part, values));
    }

    private static String plainName(StageSpec.Aggregate aggregate) {
        check(aggregate, !RUNNING.containsKey(aggregate.function())
                || aggregate.window().kind() == StageSpec.WindowKind.RUNNING, "needs the window 'running'");
        return RUNNING.getOrDefault(aggregate.function(), aggregate.function());
    }

    private static <F> F find(Map<String, Entry<F>> table, StageSpec.Aggregate aggregate) {
        Entry<F> entry = table.get(plainName(aggregate));
        if (entry == null) {
            return null;
        }
        int given = aggregate.parameters().length;
        check(aggregate, given >= entry.least && given <= entry.most, "takes " + entry.least
                + (entry.most > entry.least ? " to " + entry.most : "") + " parameters, not " + given);
        try {
            return entry.make.apply(aggregate.parameters());
        } catch (IllegalArgumentException e) {
            throw new IllegalArgumentException("stage: " + aggregate.function() + ": " + e.getMessage(), e);
        }
    }

    private static double within(double value, double low, double high) {
        if (value >= low && value <= high) {
            return value;
        }
        throw new IllegalArgumentException("the parameter " + value + " is not in " + low + " to " + high);
    }

    /** The function of that name over numeric partials, or null. */
    static NumericFunction numeric(StageSpec.Aggregate aggregate) {
        return find(NUMERIC, aggregate);
    }

    /** The function of that name over all values of a window, or null. */
    static ListFunction list(StageSpec.Aggregate aggregate) {
        ListFunction found = find(LISTS, aggregate);
        boolean labelled = aggregate.labels() && found instanceof TopK;
        return labelled ? new TopK((int) aggregate.parameters()[0], true) : found;
    }

    /** The function of that name that takes records in order, or null. */
    static OrderedFunction ordered(StageSpec.Aggregate aggregate) {
        return find(ORDERED, aggregate);
    }

    static boolean isForecast(StageSpec.Aggregate aggregate) {
        return aggregate.function().equals("FORECAST");
    }

    /** DISTINCT over panes is a sketch; over records it is exact. */
    static boolean isSketch(StageSpec.Aggregate aggregate) {
        return aggregate.function().equals("DISTINCT") && aggregate.inputs().length == 0;
    }

    static boolean isText(StageSpec.Aggregate aggregate) {
        ListFunction list = list(aggregate);
        return list != null && list.isText();
    }

    static void check(StageSpec.Aggregate aggregate, boolean fine, String message) {
        if (!fine) {
            throw new IllegalArgumentException("stage: " + aggregate.function() + " " + message);
        }
    }

    static IllegalArgumentException unknown(StageSpec.Aggregate aggregate) {
        return new IllegalArgumentException("stage: unknown function '" + aggregate.function() + "'");
    }
}
