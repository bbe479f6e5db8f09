package io.fogline.stage;

/**
 * A way to make cells out of panes or records and to merge neighbouring cells. Cells are never
 * changed once made; {@code null} is the cell over nothing and never given to these methods.
 */
interface Fold<T> {
    /** The cell of a whole pane, or null if it holds nothing of interest. */
    T ofPane(Pane pane);

    /** The cell of one record, or null if it holds nothing of interest. */
    T ofRecord(Records records, int record);

    T merge(T earlier, T later);

    /** Sets the columns that this fold stands for; {@code cell} may be null. */
    void evaluate(T cell, Results results);

    /** Records behind the cell, the most of any column; {@code cell} may be null. */
    double count(T cell);

    void write(T cell, StateWriter out);

    T read(StateReader in);

    default T join(T earlier, T later) {
        return earlier == null ? later : later == null ? earlier : merge(earlier, later);
    }
}
