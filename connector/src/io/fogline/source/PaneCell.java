package io.fogline.source;

import java.util.Arrays;

/** The partials of one key in one pane. */
final class PaneCell {
    final long pane;
    long newest = Long.MIN_VALUE;
    final double[] numbers;
    final Values[] lists;

    /** A growing list of numbers. */
    static final class Values {
        double[] items = new double[16];
        int size;

        void add(double value) {
            if (size == items.length) {
                items = Arrays.copyOf(items, size * 2);
            }
            items[size++] = value;
        }
    }

    PaneCell(PaneSpec spec, long pane) {
        this.pane = pane;
        numbers = new double[spec.numbers()];
        Arrays.fill(numbers, Double.NaN);
        lists = new Values[spec.lists()];
        for (int i = 0; i < lists.length; i++) {
            lists[i] = new Values();
        }
        for (PaneSpec.Slot slot : spec.slots()) {
            if (slot.kind().counts) {
                numbers[slot.at()] = 0;
            }
        }
    }

    /** Adds a record; {@code inputs} holds NaN where it has no value. */
    void add(PaneSpec.Slot slot, double[] inputs, double time) {
        double[] n = numbers;
        int at = slot.at();
        double v = inputs[slot.inputs()[0]];
        if (slot.kind() == PaneSpec.Kind.EVENTS) {
            events(slot, inputs, time);
            return;
        }
        if (v != v) {
            return;
        }
        switch (slot.kind()) {
            case COUNT -> n[at]++;
            case SUM -> n[at] = n[at] != n[at] ? v : n[at] + v;
            case LOGSUM -> {
                if (v > 0) {
                    n[at] = n[at] != n[at] ? Math.log(v) : n[at] + Math.log(v);
                }
            }
            case MIN -> n[at] = n[at] <= v ? n[at] : v;
            case MAX -> n[at] = n[at] >= v ? n[at] : v;
            case MOMENTS -> moments(at, v);
            case COMOMENTS -> comoments(at, v, inputs[slot.inputs()[1]]);
            case TIMED -> {
                comoments(at, (time - pane) / 1000, v);
                n[at + 6] = pane;
            }
            case FIRST -> {
                if (!(n[at] < time || n[at] == time && n[at + 1] <= v)) {
                    n[at] = time;
                    n[at + 1] = v;
                }
            }
            case LAST -> {
                if (!(n[at] > time || n[at] == time && n[at + 1] >= v)) {
                    n[at] = time;
                    n[at + 1] = v;
                }
            }
            default -> lists[at].add(v);
        }
    }

    private void events(PaneSpec.Slot slot, double[] inputs, double time) {
        boolean any = false;
        for (int input : slot.inputs()) {
            any |= inputs[input] == inputs[input];
        }
        if (any) {
            lists[slot.at()].add(time);
            for (int i = 0; i < slot.inputs().length; i++) {
                lists[slot.at() + 1 + i].add(inputs[slot.inputs()[i]]);
            }
        }
    }

    private void moments(int at, double v) {
        double[] n = numbers;
        if (n[at] == 0) {
            n[at] = 1;
            n[at + 1] = v;
            n[at + 2] = 0;
            return;
        }
        n[at]++;
        double away = v - n[at + 1];
        n[at + 1] += away / n[at];
        n[at + 2] += away * (v - n[at + 1]);
    }

    private void comoments(int at, double a, double b) {
        if (b != b) {
            return;
        }
        double[] n = numbers;
        if (n[at] == 0) {
            n[at] = 1;
            n[at + 1] = a;
            n[at + 2] = b;
            n[at + 3] = 0;
            n[at + 4] = 0;
            n[at + 5] = 0;
            return;
        }
        n[at]++;
        double awayA = a - n[at + 1];
        double awayB = b - n[at + 2];
        n[at + 1] += awayA / n[at];
        n[at + 2] += awayB / n[at];
        n[at + 3] += awayA * (a - n[at + 1]);
        n[at + 4] += awayB * (b - n[at + 2]);
        n[at + 5] += awayA * (b - n[at + 2]);
    }
}
