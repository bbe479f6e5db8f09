package io.fogline.stage;

import java.util.ArrayList;
import java.util.List;

/** Rows of panes that are not complete yet, as state. */
final class PaneRows {
    private PaneRows() {}

    static void write(PaneRow row, StateWriter out) {
        out.putLong(row.getPane());
        double[] nums = row.getNums();
        out.putLong(nums == null ? 0 : nums.length);
        writeDoubles(nums, out);
        double[][] lists = row.getLists();
        out.putLong(lists == null ? 0 : lists.length);
        for (int i = 0; lists != null && i < lists.length; i++) {
            out.putLong(lists[i] == null ? 0 : lists[i].length);
            writeDoubles(lists[i], out);
        }
        List<byte[]> blobs = row.getBlobs();
        out.putLong(blobs == null ? 0 : blobs.size());
        for (int i = 0; blobs != null && i < blobs.size(); i++) {
            out.putBytes(blobs.get(i) == null ? new byte[0] : blobs.get(i));
        }
        out.putText(row.getPass());
    }

    private static void writeDoubles(double[] values, StateWriter out) {
        if (values != null) {
            out.putDoubles(values, 0, values.length);
        }
    }

    static PaneRow read(StateReader in) {
        PaneRow row = new PaneRow();
        row.setPane(in.getLong());
        row.setNums(readDoubles(in));
        double[][] lists = new double[in.getInt()][];
        for (int i = 0; i < lists.length; i++) {
            lists[i] = readDoubles(in);
        }
        row.setLists(lists);
        List<byte[]> blobs = new ArrayList<>();
        for (int left = in.getInt(); left > 0; left--) {
            byte[] blob = in.getBytes();
            blobs.add(blob.length == 0 ? null : blob);
        }
        row.setBlobs(blobs);
        row.setPass(in.getText());
        return row;
    }

    private static double[] readDoubles(StateReader in) {
        double[] values = new double[in.getInt()];
        in.getDoubles(values, 0, values.length);
        return values;
    }
}
