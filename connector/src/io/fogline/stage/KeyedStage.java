package io.fogline.stage;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoder;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.KeyValueGroupedDataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.streaming.OutputMode;
import org.apache.spark.sql.streaming.TimeMode;
import scala.Tuple2;

/**
 * The second stage as a step of a DataFrame: panes of (channel, key) in, evaluations out. A streaming
 * input gives a stateful operator in append mode that can be followed by further stateful steps; a
 * batch input gives a sorted group-wise map. Both run the same core. In real time it is {@link #live}.
 */
public final class KeyedStage {
    private static final String[] KEY = {"channel", "key"};
    private static final String[] VALUE = {"pane", "nums", "lists", "blobs", "pass", "_time"};
    private static final String[] RESULT =
            {"node", "key", "starts", "ends", "counts", "values", "texts", "pass", "_time"};

    private KeyedStage() {}

    /** Raises {@link IllegalArgumentException} when the spec is wrong. */
    public static Dataset<Row> apply(Dataset<Row> panes, String spec) {
        StageSpec.parse(spec);
        Encoder<ResultRow> result = Encoders.bean(ResultRow.class);
        KeyValueGroupedDataset<Tuple2<Integer, String>, PaneRow> grouped = grouped(panes);
        Dataset<ResultRow> results = panes.isStreaming()
                ? grouped.transformWithState(new StageProcessor(spec), "_time", OutputMode.Append(), result)
                : grouped.flatMapSortedGroups(columns(new String[] {"pane"}), new StageBatch(spec), result);
        return select(results.toDF(), RESULT);
    }

    /** The stage in real time, in update mode: each row holds one record, and gives its results at once. */
    public static Dataset<Row> live(Dataset<Row> records, String spec) {
        StageSpec.parse(spec);
        Dataset<ResultRow> results = grouped(records).transformWithState(
                new LiveProcessor(spec), TimeMode.None(), OutputMode.Update(), Encoders.bean(ResultRow.class));
        return select(results.toDF(), RESULT);
    }

    private static KeyValueGroupedDataset<Tuple2<Integer, String>, PaneRow> grouped(Dataset<Row> panes) {
        Encoder<Tuple2<Integer, String>> key = Encoders.tuple(Encoders.INT(), Encoders.STRING());
        return select(panes, KEY, VALUE).groupBy(columns(KEY)).as(key, Encoders.bean(PaneRow.class));
    }

    private static Column[] columns(String... names) {
        Column[] columns = new Column[names.length];
        for (int i = 0; i < names.length; i++) {
            columns[i] = functions.col(names[i]);
        }
        return columns;
    }

    private static Dataset<Row> select(Dataset<Row> data, String[]... names) {
        List<Column> columns = new ArrayList<>();
        for (String[] group : names) {
            columns.addAll(List.of(columns(group)));
        }
        return data.select(columns.toArray(new Column[0]));
    }
}
