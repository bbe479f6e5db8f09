package io.fogline.stage;

import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.streaming.ExpiredTimerInfo;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.StatefulProcessor;
import org.apache.spark.sql.streaming.TTLConfig;
import org.apache.spark.sql.streaming.TimeMode;
import org.apache.spark.sql.streaming.TimerValues;
import org.apache.spark.sql.streaming.ValueState;
import scala.Tuple2;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The stage over a stream. A key's whole state is one value, and it has at most one timer, for what
 * becomes due without new panes. Everything due at the watermark is emitted in that very batch, once,
 * with a time that no later operator takes for late.
 */
final class StageProcessor extends StatefulProcessor<Tuple2<Integer, String>, PaneRow, ResultRow> {
    private final String json;
    private transient StageSpec spec;
    /** One state of each channel, used for one key after the other, and its form when nothing is kept. */
    private transient KeyState[] states;
    private transient byte[][] blanks;
    private transient ValueState<byte[]> kept;

    StageProcessor(String json) {
        this.json = json;
    }

    @Override
    public void init(OutputMode mode, TimeMode time) {
        spec = StageSpec.parse(json);
        states = new KeyState[spec.channels().size()];
        blanks = new byte[states.length][];
        for (int channel = 0; channel < states.length; channel++) {
            states[channel] = new KeyState(spec, channel);
            blanks[channel] = states[channel].toBytes();
        }
        kept = getHandle().getValueState("state", Encoders.BINARY(), TTLConfig.NONE());
    }

    @Override
    public Iterator<ResultRow> handleInputRows(
            Tuple2<Integer, String> key, Iterator<PaneRow> rows, TimerValues timers) {
        if (key._1() < 0) {
            return rows.map(row -> ResultRow.passed(key._2(), row));
        }
        return run(key, rows, timers, true);
    }

    @Override
    public Iterator<ResultRow> handleExpiredTimer(
            Tuple2<Integer, String> key, TimerValues timers, ExpiredTimerInfo expired) {
        return run(key, Iterator$.MODULE$.empty(), timers, false);
    }

    private Iterator<ResultRow> run(
            Tuple2<Integer, String> key, Iterator<PaneRow> rows, TimerValues timers, boolean timerWaits) {
        int channel = key._1();
        KeyState state = states[channel];
        byte[] before = kept.get();
        state.read(before != null ? before : blanks[channel]);
        long oldTimer = before != null && timerWaits ? timer(state) : Long.MAX_VALUE;
        while (rows.hasNext()) {
            state.add(rows.next());
        }
        long complete = Math.floorDiv(timers.getCurrentWatermarkInMs(), spec.paneMs()) * spec.paneMs();
        state.advance(complete);
        keep(state, before != null);
        moveTimer(oldTimer, timer(state));
        return results(state, key._2(), complete);
    }

    private void keep(KeyState state, boolean existed) {
        if (!state.isEmpty()) {
            kept.update(state.toBytes());
        } else if (existed) {
            kept.clear();
        }
    }

    private long timer(KeyState state) {
        long due = state.due();
        return due == Long.MAX_VALUE ? due : -Math.floorDiv(-due, spec.paneMs()) * spec.paneMs();
    }

    private void moveTimer(long from, long to) {
        if (from != to && from != Long.MAX_VALUE) {
            getHandle().deleteTimer(from);
        }
        if (from != to && to != Long.MAX_VALUE) {
            getHandle().registerTimer(to);
        }
    }

    private static Iterator<ResultRow> results(KeyState state, String key, long complete) {
        List<ResultRow> rows = new ArrayList<>();
        state.take(rows);
        Instant time = Instant.ofEpochMilli(complete).minusNanos(1000);
        for (ResultRow row : rows) {
            row.setKey(key);
            row.set_time(time);
        }
        return CollectionConverters.asScala(rows.iterator());
    }
}
