package io.fogline.source;

import java.io.Serializable;

/** The bytes {@code [start, end)} of one file: whole messages, as the planner cut them. */
record Slice(String file, String path, long start, long end) implements Serializable {
    /** Identifies the slice in progress and rejects. */
    String id() {
        return file + "-" + start + "-" + end;
    }
}
