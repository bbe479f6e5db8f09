package io.fogline.stage;

import java.util.function.DoubleUnaryOperator;

/** COUNT, SUM, AVG, MIN, MAX, FIRST, LAST and GEOMETRIC_MEAN. */
final class BasicFunctions {
    private BasicFunctions() {}

    static NumericFunction count() {
        return new NumericFunction(1, PartialKind.SUM) {
            @Override
            double count(double[] cell, int[] at) {
                return cell[at[0]];
            }

            @Override
            double value(double[] cell, int[] at) {
                return cell[at[0]];
            }

            @Override
            void lift(double[] cell, int[] at, double time, double[] inputs) {
                cell[at[0]] = 1;
            }
        };
    }

    static NumericFunction sum() {
        return new Counted(PartialKind.SUM) {
            @Override
            double value(double[] cell, int[] at) {
                return cell[at[0]];
            }
        };
    }

    static NumericFunction mean() {
        return new Counted(PartialKind.SUM) {
            @Override
            double value(double[] cell, int[] at) {
                return cell[at[0]] / cell[at[1]];
            }
        };
    }

    /** MIN or MAX. */
    static NumericFunction extreme(PartialKind kind) {
        return new Counted(kind) {
            @Override
            double value(double[] cell, int[] at) {
                return cell[at[0]];
            }
        };
    }

    /** FIRST or LAST. */
    static NumericFunction edge(PartialKind kind) {
        return new Counted(kind) {
            @Override
            double value(double[] cell, int[] at) {
                return cell[at[0] + 1];
            }

            @Override
            void lift(double[] cell, int[] at, double time, double[] inputs) {
                cell[at[0]] = time;
                cell[at[0] + 1] = inputs[0];
                cell[at[1]] = 1;
            }
        };
    }

    static NumericFunction geometricMean() {
        DoubleUnaryOperator log = value -> value > 0 ? Math.log(value) : Double.NaN;
        return new NumericFunction(1, PartialKind.SUM, PartialKind.SUM, PartialKind.MIN) {
            @Override
            double count(double[] cell, int[] at) {
                return cell[at[1]];
            }

            @Override
            double value(double[] cell, int[] at) {
                return cell[at[2]] > 0 ? Math.exp(cell[at[0]] / cell[at[1]]) : Double.NaN;
            }

            @Override
            void lift(double[] cell, int[] at, double time, double[] inputs) {
                cell[at[0]] = log.applyAsDouble(inputs[0]);
                cell[at[1]] = 1;
                cell[at[2]] = inputs[0];
            }
        };
    }

    /** One partial and then the number of records behind it. */
    private abstract static class Counted extends NumericFunction {
        Counted(PartialKind kind) {
            super(1, kind, PartialKind.SUM);
        }

        @Override
        double count(double[] cell, int[] at) {
            return cell[at[1]];
        }

        @Override
        void lift(double[] cell, int[] at, double time, double[] inputs) {
            cell[at[0]] = inputs[0];
            cell[at[1]] = 1;
        }
    }
}
