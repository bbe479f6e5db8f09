package io.fogline.source;

import java.io.IOException;
import java.util.SortedMap;

/**
 * Where the messages of a read are: files, or the log of a topic. A position in it never changes its
 * meaning; positions that it gives are between messages.
 */
interface Store {
    /**
     * The state at one moment.
     *
     * @param sizes the position behind the last message, by file name, in name order
     * @param complete nothing will be added any more
     */
    record Listing(SortedMap<String, Long> sizes, boolean complete) {}

    Listing list();

    /** The positions of the first messages that are still there; 0 for a file that is not in it. */
    SortedMap<String, Long> firsts();

    /** Where a stream without a checkpoint begins. */
    default SortedMap<String, Long> begins() {
        return firsts();
    }

    String pathOf(String file);

    /**
     * The first boundary at or behind {@code wanted}, or the last one before {@code size} where there
     * is none.
     *
     * @param from a boundary before {@code wanted}
     * @param size how far the file counts
     * @param complete nothing will follow at {@code size}, so it is a boundary
     */
    long boundary(String file, long from, long wanted, long size, boolean complete) throws IOException;

    static Store of(SourceOptions options) {
        return options.log() ? new InputLog(options) : new InputFiles(options);
    }
}
