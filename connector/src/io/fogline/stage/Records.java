package io.fogline.stage;

import java.util.Arrays;
import java.util.List;

/** The records of one pane in order: by time, then by inputs. A missing input is NaN. */
final class Records {
    private double[] times;
    private final double[][] inputs;
    private String[] labels;

    /** Gathers the events of all rows of a pane. */
    Records(List<PaneRow> rows, StageSpec.Channel channel) {
        int at = channel.eventsAt();
        inputs = new double[channel.inputs()][];
        times = gather(rows, at);
        for (int input = 0; input < inputs.length; input++) {
            inputs[input] = gather(rows, at + 1 + input);
            if (inputs[input].length != times.length) {
                throw new IllegalArgumentException("stage: an events row has " + times.length + " times, but "
                        + inputs[input].length + " values of input " + input);
            }
        }
        if (channel.labels()) {
            labels = labels(rows, at);
        }
        sort();
    }

    int size() {
        return times.length;
    }

    double time(int record) {
        return times[record];
    }

    double input(int record, int input) {
        return inputs[input][record];
    }

    String label(int record) {
        return labels == null ? null : labels[record];
    }

    /** Whether the record has a value for at least one of the inputs. */
    boolean hasAny(int record, int[] which) {
        for (int input : which) {
            double value = inputs[input][record];
            if (value == value) {
                return true;
            }
        }
        return false;
    }

    /** Copies the asked-for inputs; false when one of them is missing. */
    boolean copyInputs(int record, int[] which, double[] into) {
        for (int i = 0; i < which.length; i++) {
            double value = inputs[which[i]][record];
            if (value != value) {
                return false;
            }
            into[i] = value;
        }
        return true;
    }

    private static double[] gather(List<PaneRow> rows, int at) {
        if (rows.size() == 1) {
            return Pane.values(rows.get(0), at);
        }
        int size = 0;
        for (PaneRow row : rows) {
            size += Pane.values(row, at).length;
        }
        double[] all = new double[size];
        int end = 0;
        for (PaneRow row : rows) {
            double[] list = Pane.values(row, at);
            System.arraycopy(list, 0, all, end, list.length);
            end += list.length;
        }
        return all;
    }

    private String[] labels(List<PaneRow> rows, int at) {
        String[] all = new String[times.length];
        int end = 0;
        for (PaneRow row : rows) {
            int next = end + Pane.values(row, at).length;
            Arrays.fill(all, end, next, row.getPass());
            end = next;
        }
        return all;
    }

    /**
     * Positions in order of time, ties by these inputs in this order, so that what a node sees does not
     * depend on inputs that only others ask for; null when they stand in that order already.
     */
    int[] orderedBy(int[] which) {
        for (int i = 1; i < times.length; i++) {
            if (compare(i - 1, i, which) > 0) {
                return Order.sorted(times.length, (a, b) -> compare(a, b, which));
            }
        }
        return null;
    }

    private int compare(int a, int b, int[] which) {
        int order = Double.compare(times[a], times[b]);
        for (int i = 0; order == 0 && i < which.length; i++) {
            order = Double.compare(inputs[which[i]][a], inputs[which[i]][b]);
        }
        return order;
    }

    private int compare(int a, int b) {
        int order = Double.compare(times[a], times[b]);
        for (int input = 0; order == 0 && input < inputs.length; input++) {
            order = Double.compare(inputs[input][a], inputs[input][b]);
        }
        return order;
    }

    private void sort() {
        boolean sorted = true;
        for (int i = 1; sorted && i < times.length; i++) {
            sorted = times[i - 1] < times[i] || compare(i - 1, i) <= 0;
        }
        if (sorted) {
            return;
        }
        int[] order = Order.sorted(times.length, this::compare);
        times = Order.apply(order, times);
        for (int input = 0; input < inputs.length; input++) {
            inputs[input] = Order.apply(order, inputs[input]);
        }
        if (labels != null) {
            labels = Order.apply(order, labels);
        }
    }
}
