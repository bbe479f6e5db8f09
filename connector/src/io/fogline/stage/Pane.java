package io.fogline.stage;

import java.util.List;

/** All rows of one key and one complete pane, seen together. */
final class Pane {
    private static final double[] NO_VALUES = {};

    private final StageSpec.Channel channel;
    private final long start;
    private final List<PaneRow> rows;
    private Records records;

    Pane(StageSpec.Channel channel, long start, List<PaneRow> rows) {
        this.channel = channel;
        this.start = start;
        this.rows = rows;
    }

    long start() {
        return start;
    }

    List<PaneRow> rows() {
        return rows;
    }

    /** The pane's events in time order; sorted once, however many nodes ask. */
    Records records() {
        if (records == null) {
            records = new Records(rows, channel);
        }
        return records;
    }

    static double[] nums(PaneRow row, int at, int width) {
        double[] nums = row.getNums();
        if (nums == null || nums.length < at + width) {
            throw new IllegalArgumentException("stage: a row has " + (nums == null ? 0 : nums.length)
                    + " nums, but a partial needs those from " + at + " to " + (at + width - 1));
        }
        return nums;
    }

    static double[] values(PaneRow row, int at) {
        double[][] lists = row.getLists();
        if (lists == null || lists.length <= at) {
            throw new IllegalArgumentException("stage: a row has no list " + at);
        }
        return lists[at] == null ? NO_VALUES : lists[at];
    }

    /** Null when the pane has none. */
    static byte[] blob(PaneRow row, int at) {
        List<byte[]> blobs = row.getBlobs();
        if (blobs == null || blobs.size() <= at) {
            throw new IllegalArgumentException("stage: a row has no blob " + at);
        }
        return blobs.get(at);
    }
}
