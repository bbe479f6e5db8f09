package io.fogline.source;

import java.util.List;

/**
 * A condition over the columns of a record, with SQL's three values: {@link #TRUE}, {@link #FALSE}
 * and {@link #NULL}. Only rows for which it is TRUE are produced.
 */
interface Filter {
    int FALSE = 0;
    int TRUE = 1;
    int NULL = -1;

    int test(Columns columns);

    /** Compares the column's value, known not to be null, with a constant: negative, zero or positive. */
    interface Comparison {
        int compare(Columns columns);
    }

    static int of(boolean value) {
        return value ? TRUE : FALSE;
    }

    static Filter and(List<Filter> parts) {
        Filter[] filters = parts.toArray(Filter[]::new);
        return columns -> {
            int result = TRUE;
            for (Filter filter : filters) {
                int value = filter.test(columns);
                if (value == FALSE) {
                    return FALSE;
                }
                result = value == NULL ? NULL : result;
            }
            return result;
        };
    }

    static Filter or(List<Filter> parts) {
        Filter[] filters = parts.toArray(Filter[]::new);
        return columns -> {
            int result = FALSE;
            for (Filter filter : filters) {
                int value = filter.test(columns);
                if (value == TRUE) {
                    return TRUE;
                }
                result = value == NULL ? NULL : result;
            }
            return result;
        };
    }

    static Filter not(Filter part) {
        return columns -> {
            int value = part.test(columns);
            return value == NULL ? NULL : 1 - value;
        };
    }

    /** {@code column op constant}; {@code column} is -1 for the event time, which is never null. */
    static Filter compare(String op, int column, Comparison with) {
        switch (op) {
            case ">":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) > 0);
            case ">=":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) >= 0);
            case "<":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) < 0);
            case "<=":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) <= 0);
            case "==":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) == 0);
            case "!=":
                return columns -> isNull(columns, column) ? NULL : of(with.compare(columns) != 0);
            default:
                throw new IllegalArgumentException("unknown operator " + op + " in option filter");
        }
    }

    private static boolean isNull(Columns columns, int column) {
        return column >= 0 && columns.isNull(column);
    }
}
