package io.fogline.stage;

import java.util.List;

/**
 * One node of one key. Panes come complete and in ascending order; before a pane is added the node
 * has been advanced to its start.
 */
interface Node {
    void add(Pane pane);

    /** Makes every evaluation due at or before {@code complete}. */
    void advance(long complete);

    /** The earliest time to which advancing could change anything, or {@link Long#MAX_VALUE}. */
    long due();

    /** Whether the node as it is equals a new one, so that nothing need be kept. */
    boolean isEmpty();

    void take(List<ResultRow> rows);

    void write(StateWriter out);

    void read(StateReader in);
}
