package io.fogline.stage;

import java.time.Instant;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.api.java.function.FlatMapGroupsFunction;
import scala.Tuple2;

/** The stage over history: reads the sorted panes of a key once and gives results as they become due. */
final class StageBatch implements FlatMapGroupsFunction<Tuple2<Integer, String>, PaneRow, ResultRow> {
    private static final long FOREVER = Long.MAX_VALUE / 4;
    private static final int ROWS_AT_A_TIME = 1024;

    private final String json;
    private transient StageSpec spec;

    StageBatch(String json) {
        this.json = json;
    }

    @Override
    public Iterator<ResultRow> call(Tuple2<Integer, String> key, Iterator<PaneRow> rows) {
        if (spec == null) {
            spec = StageSpec.parse(json);
        }
        return new Run(key._1(), key._2(), rows);
    }

    private final class Run implements Iterator<ResultRow> {
        private final String key;
        private final Iterator<PaneRow> rows;
        private final KeyState state;
        private final Deque<ResultRow> ready = new ArrayDeque<>();
        private boolean finished;

        Run(int channel, String key, Iterator<PaneRow> rows) {
            this.key = key;
            this.rows = rows;
            this.state = channel < 0 ? null : new KeyState(spec, channel);
        }

        @Override
        public boolean hasNext() {
            while (ready.isEmpty() && !finished) {
                read();
            }
            return !ready.isEmpty();
        }

        private void read() {
            long complete = FOREVER;
            for (int left = ROWS_AT_A_TIME; left > 0 && rows.hasNext(); left--) {
                PaneRow row = rows.next();
                if (state == null) {
                    ready.add(ResultRow.passed(key, row));
                } else {
                    state.add(row);
                    complete = row.getPane();
                }
            }
            finished = !rows.hasNext();
            if (state != null) {
                takeResults(finished ? FOREVER : complete);
            }
        }

        private void takeResults(long complete) {
            state.advance(complete);
            List<ResultRow> made = new ArrayList<>();
            state.take(made);
            for (ResultRow row : made) {
                row.setKey(key);
                row.set_time(Instant.ofEpochMilli(row.getEnds()[row.getEnds().length - 1]));
                ready.add(row);
            }
        }

        @Override
        public ResultRow next() {
            return ready.remove();
        }
    }
}
