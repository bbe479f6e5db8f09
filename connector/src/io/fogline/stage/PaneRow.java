package io.fogline.stage;

import java.time.Instant;
import java.util.List;

/** One input row of the stage: the partials of one key in one pane, or a finished result to hand through. */
public final class PaneRow {
    private long pane;
    private double[] nums;
    private double[][] lists;
    /** A list, because an array of binaries without nulls cannot be decoded by Spark 4.3. */
    private List<byte[]> blobs;
    private String pass;
    private Instant time;

    public long getPane() {
        return pane;
    }

    public void setPane(long pane) {
        this.pane = pane;
    }

    public double[] getNums() {
        return nums;
    }

    public void setNums(double[] nums) {
        this.nums = nums;
    }

    public double[][] getLists() {
        return lists;
    }

    public void setLists(double[][] lists) {
        this.lists = lists;
    }

    public List<byte[]> getBlobs() {
        return blobs;
    }

    public void setBlobs(List<byte[]> blobs) {
        this.blobs = blobs;
    }

    public String getPass() {
        return pass;
    }

    public void setPass(String pass) {
        this.pass = pass;
    }

    public Instant get_time() {
        return time;
    }

    public void set_time(Instant time) {
        this.time = time;
    }
}
