package io.fogline.stage;

/** Stable sorting of parallel arrays through a permutation. */
final class Order {
    /** Compares the elements at two positions. */
    interface ByPosition {
        int compare(int a, int b);
    }

    private static final int SHORT = 12;

    private Order() {}

    /** Positions in ascending order, by merge sort over insertion-sorted runs. */
    static int[] sorted(int size, ByPosition by) {
        int[] order = new int[size];
        for (int i = 0; i < size; i++) {
            order[i] = i;
        }
        sort(order, new int[size], 0, size, by);
        return order;
    }

    private static void sort(int[] order, int[] spare, int from, int to, ByPosition by) {
        if (to - from <= SHORT) {
            insertion(order, from, to, by);
            return;
        }
        int middle = (from + to) >>> 1;
        sort(order, spare, from, middle, by);
        sort(order, spare, middle, to, by);
        if (by.compare(order[middle - 1], order[middle]) <= 0) {
            return;
        }
        System.arraycopy(order, from, spare, from, middle - from);
        int left = from;
        int right = middle;
        for (int at = from; left < middle; at++) {
            boolean takeRight = right < to && by.compare(order[right], spare[left]) < 0;
            order[at] = takeRight ? order[right++] : spare[left++];
        }
    }

    private static void insertion(int[] order, int from, int to, ByPosition by) {
        for (int i = from + 1; i < to; i++) {
            int moved = order[i];
            int at = i;
            while (at > from && by.compare(order[at - 1], moved) > 0) {
                order[at] = order[at - 1];
                at--;
            }
            order[at] = moved;
        }
    }

    static double[] apply(int[] order, double[] values) {
        double[] result = new double[order.length];
        for (int i = 0; i < order.length; i++) {
            result[i] = values[order[i]];
        }
        return result;
    }

    static String[] apply(int[] order, String[] values) {
        String[] result = new String[order.length];
        for (int i = 0; i < order.length; i++) {
            result[i] = values[order[i]];
        }
        return result;
    }
}
