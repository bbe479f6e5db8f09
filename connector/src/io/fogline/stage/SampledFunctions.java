package io.fogline.stage;

/**
 * HT_AVG, HT_SUM, HT_COUNT: Horvitz-Thompson estimates from records that were each kept with a known
 * probability p, with the relative half-width of their confidence interval and the sampling fraction
 * that would have given an asked-for one. Fed from records the inputs are [x, p].
 */
final class SampledFunctions {
    enum Estimate { AVG, SUM, COUNT }

    enum Part { VALUE, ERROR, FRACTION }

    private static final PartialKind S = PartialKind.SUM;

    private SampledFunctions() {}

    static NumericFunction of(Estimate estimate, Part part, double[] parameters) {
        return new NumericFunction(2, S, S, S, S, S, S) {
            @Override
            double count(double[] cell, int[] at) {
                return cell[at[5]];
            }

            @Override
            double value(double[] cell, int[] at) {
                double value = estimate(estimate, cell, at);
                if (part == Part.VALUE) {
                    return value;
                }
                double variance = Math.max(0, variance(estimate, value, cell, at));
                return part == Part.ERROR
                        ? relative(parameters[0] * Math.sqrt(variance), Math.abs(value))
                        : fraction(variance, cell[at[5]] / cell[at[0]], parameters[1] * value / parameters[0]);
            }

            @Override
            void lift(double[] cell, int[] at, double time, double[] inputs) {
                double x = inputs[0];
                double p = inputs[1];
                double weight = (1 - p) / (p * p);
                double[] sums = {1 / p, x / p, weight, weight * x, weight * x * x, 1};
                for (int i = 0; i < sums.length; i++) {
                    cell[at[i]] = sums[i];
                }
            }
        };
    }

    private static double estimate(Estimate estimate, double[] cell, int[] at) {
        return switch (estimate) {
            case AVG -> cell[at[1]] / cell[at[0]];
            case SUM -> cell[at[1]];
            case COUNT -> cell[at[0]];
        };
    }

    private static double variance(Estimate estimate, double mean, double[] cell, int[] at) {
        double ones = cell[at[2]];
        double sum = cell[at[3]];
        double squares = cell[at[4]];
        return switch (estimate) {
            case AVG -> (squares - 2 * mean * sum + mean * mean * ones) / (cell[at[0]] * cell[at[0]]);
            case SUM -> squares;
            case COUNT -> ones;
        };
    }

    private static double relative(double width, double value) {
        return width == 0 ? 0 : value > 0 ? width / value : Double.NaN;
    }

    /** The variance goes with (1 - p) / p; nothing can be said from a complete sample. */
    private static double fraction(double variance, double p, double width) {
        if (!(p < 1)) {
            return Double.NaN;
        }
        double whole = variance * p / (1 - p);
        return whole == 0 ? 0 : whole / (whole + width * width);
    }
}
