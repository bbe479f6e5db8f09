package io.fogline.stage;

import java.time.Instant;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The stage in real time: each row is one record, and its results leave with it. What is kept of a key
 * is written at every row, but read only once while the key is among those seen last.
 */
final class LiveProcessor extends StatefulProcessor<Tuple2<Integer, String>, PaneRow, ResultRow> {
    private static final int MOST_AT_HAND = 2000;

    private final String json;
    private transient StageSpec spec;
    private transient Map<Tuple2<Integer, String>, LiveState> atHand;
    private transient ValueState<byte[]> kept;

    LiveProcessor(String json) {
        this.json = json;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        spec = StageSpec.parse(json);
        atHand = new LastSeen();
        kept = getHandle().getValueState("state", Encoders.BINARY(), TTLConfig.NONE());
    }

    @Override
    public Iterator<ResultRow> handleInputRows(
            Tuple2<Integer, String> key, Iterator<PaneRow> rows, TimerValues timers) {
        LiveState state = atHand.get(key);
        if (state == null) {
            state = read(key);
            atHand.put(key, state);
        }
        List<ResultRow> results = new ArrayList<>();
        while (rows.hasNext()) {
            state.add(rows.next());
        }
        state.take(results);
        kept.update(state.toBytes());
        for (ResultRow row : results) {
            row.setKey(key._2());
            row.set_time(Instant.ofEpochMilli(row.getEnds()[row.getEnds().length - 1]));
        }
        return CollectionConverters.asScala(results.iterator());
    }

    private LiveState read(Tuple2<Integer, String> key) {
        LiveState state = new LiveState(spec, key._1());
        byte[] before = kept.get();
        if (before != null) {
            state.read(before);
        }
        return state;
    }

    /** Forgets the key that was asked for longest ago. */
    private static final class LastSeen extends LinkedHashMap<Tuple2<Integer, String>, LiveState> {
        private static final long serialVersionUID = 1;

        LastSeen() {
            super(16, 0.75f, true);
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<Tuple2<Integer, String>, LiveState> eldest) {
            return size() > MOST_AT_HAND;
        }
    }
}
