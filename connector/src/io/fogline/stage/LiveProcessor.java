package io.fogline.stage;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
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

/** The stage in real time: each row is one record, and its results leave with it. */
final class LiveProcessor extends StatefulProcessor<Tuple2<Integer, String>, PaneRow, ResultRow> {
    private final String json;
    private transient LiveState[] states;
    private transient byte[][] blanks;
    private transient ValueState<byte[]> kept;

    LiveProcessor(String json) {
        this.json = json;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        StageSpec spec = StageSpec.parse(json);
        states = new LiveState[spec.channels().size()];
        blanks = new byte[states.length][];
        for (int channel = 0; channel < states.length; channel++) {
            states[channel] = new LiveState(spec, channel);
            blanks[channel] = states[channel].toBytes();
        }
        kept = getHandle().getValueState("state", Encoders.BINARY(), TTLConfig.NONE());
    }

    @Override
    public Iterator<ResultRow> handleInputRows(
            Tuple2<Integer, String> key, Iterator<PaneRow> rows, TimerValues timers) {
        LiveState state = states[key._1()];
        byte[] before = kept.get();
        state.read(before != null ? before : blanks[key._1()]);
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
}
