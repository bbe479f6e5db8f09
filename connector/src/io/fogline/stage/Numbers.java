package io.fogline.stage;

import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;

/** Numbers as JSON text: the shortest form that reads back the same, integers without a fraction. */
final class Numbers {
    private static final double EXACT = 1e15;

    private Numbers() {}

    static String text(double value) {
        if (value != value || Double.isInfinite(value)) {
            return "null";
        }
        if (value == Math.rint(value) && Math.abs(value) < EXACT) {
            return Long.toString((long) value);
        }
        BigDecimal shortest = shortest(value);
        int exponent = shortest.precision() - shortest.scale() - 1;
        return exponent >= -5 && exponent < 16 ? shortest.toPlainString() : shortest.toString();
    }

    /** JDK 17 sometimes writes a digit more than needed. */
    private static BigDecimal shortest(double value) {
        BigDecimal best = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        while (best.precision() > 1) {
            BigDecimal fewer = best.round(new MathContext(best.precision() - 1, RoundingMode.HALF_EVEN));
            if (fewer.doubleValue() != value) {
                return best;
            }
            best = fewer.stripTrailingZeros();
        }
        return best;
    }
}
