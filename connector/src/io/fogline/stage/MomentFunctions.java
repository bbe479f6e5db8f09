package io.fogline.stage;

/** VARIANCE and SDEV (of a sample), CORRELATION and SLOPE. */
final class MomentFunctions {
    private MomentFunctions() {}

    static NumericFunction variance() {
        return new Moments() {
            @Override
            double value(double[] cell, int[] at) {
                return variance(cell, at[0]);
            }
        };
    }

    static NumericFunction deviation() {
        return new Moments() {
            @Override
            double value(double[] cell, int[] at) {
                return Math.sqrt(variance(cell, at[0]));
            }
        };
    }

    static NumericFunction correlation() {
        return new Comoments(2, PartialKind.COMOMENTS) {
            @Override
            double value(double[] cell, int[] at) {
                double spread = Math.sqrt(cell[at[0] + 3]) * Math.sqrt(cell[at[0] + 4]);
                return spread > 0 ? cell[at[0] + 5] / spread : Double.NaN;
            }

            @Override
            void lift(double[] cell, int[] at, double time, double[] inputs) {
                single(cell, at[0], inputs[0], inputs[1]);
            }
        };
    }

    /** Times stay close to an origin, so that they keep their digits. */
    static NumericFunction slope() {
        return new Slope();
    }

    private static final class Slope extends Comoments {
        Slope() {
            super(1, PartialKind.TIMED);
        }

        @Override
        double value(double[] cell, int[] at) {
            return cell[at[0] + 3] > 0 ? cell[at[0] + 5] / cell[at[0] + 3] : Double.NaN;
        }

        @Override
        void lift(double[] cell, int[] at, double time, double[] inputs) {
            single(cell, at[0], 0, inputs[0]);
            cell[at[0] + 6] = time;
        }
    }

    private static double variance(double[] cell, int at) {
        return cell[at] > 1 ? cell[at + 2] / (cell[at] - 1) : Double.NaN;
    }

    private static void single(double[] cell, int at, double a, double b) {
        cell[at] = 1;
        cell[at + 1] = a;
        cell[at + 2] = b;
    }

    private abstract static class Moments extends NumericFunction {
        Moments() {
            super(1, PartialKind.MOMENTS);
        }

        @Override
        double count(double[] cell, int[] at) {
            return cell[at[0]];
        }

        @Override
        void lift(double[] cell, int[] at, double time, double[] inputs) {
            cell[at[0]] = 1;
            cell[at[0] + 1] = inputs[0];
        }
    }

    private abstract static class Comoments extends NumericFunction {
        Comoments(int inputs, PartialKind kind) {
            super(inputs, kind);
        }

        @Override
        double count(double[] cell, int[] at) {
            return cell[at[0]];
        }
    }
}
