package io.fogline.source;

import io.fogline.decode.Record;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.PartitionReader;

/** Reads a partition into panes: one row per channel, key and pane that holds a record. */
final class PaneReader implements PartitionReader<InternalRow> {
    private static final GenericArrayData NOTHING = new GenericArrayData(new Object[0]);

    private final SlicePartition partition;
    private final SourceOptions options;
    private final Progress progress;
    private final PaneSpec spec;
    private final PaneKeys[] tables;
    private final PaneSpec.Slot[] slots;
    private final PaneSpec.Input[][] inputsOf;
    private final double[][] values;
    private long paneFrom;
    private long paneTo;
    private long pane;
    private List<InternalRow> rows;
    private int next;

    PaneReader(SlicePartition partition, SourceOptions options, Progress progress) {
        this.partition = partition;
        this.options = options;
        this.progress = progress;
        spec = PaneSpec.parse(options.panes(), options.fields());
        slots = spec.slots().toArray(PaneSpec.Slot[]::new);
        tables = new PaneKeys[spec.channels().size()];
        inputsOf = new PaneSpec.Input[tables.length][];
        values = new double[tables.length][];
        int inputs = spec.channels().stream().mapToInt(channel -> channel.inputs().size()).max().orElse(0);
        for (int i = 0; i < tables.length; i++) {
            tables[i] = new PaneKeys(spec.channels().get(i).keys());
            inputsOf[i] = spec.channels().get(i).inputs().toArray(PaneSpec.Input[]::new);
            values[i] = new double[inputs];
        }
    }

    @Override
    public boolean next() throws IOException {
        if (rows == null) {
            rows = new ArrayList<>();
            readAll();
        }
        return next++ < rows.size();
    }

    @Override
    public InternalRow get() {
        return rows.get(next - 1);
    }

    private void readAll() throws IOException {
        long time = partition.time();
        for (Slice slice : partition.slices()) {
            try (SliceReader reader = new SliceReader(slice, options, new int[0], partition.context())) {
                while (reader.next()) {
                    add(reader.columns());
                }
                if (progress != null) {
                    progress.add(reader.found());
                }
                if (options.clock() != null) {
                    time = Math.max(time, reader.found().newest());
                }
            }
        }
        long told = Record.NO_TIME;
        for (int i = 0; i < tables.length; i++) {
            for (PaneKeys.Entry entry : tables[i].entries()) {
                for (PaneCell cell : entry.cells) {
                    rows.add(row(spec.channels().get(i).number(), entry, cell));
                    told = Math.max(told, cell.newest);
                }
            }
        }
        if (time > told) {
            rows.add(new GenericInternalRow(new Object[] {null, null, null, null, null, null, null, time}));
        }
    }

    private void add(Columns columns) {
        long micros = columns.time();
        if (micros < paneFrom || micros >= paneTo) {
            enter(micros);
        }
        double time = micros / 1000.0;
        for (int i = 0; i < tables.length; i++) {
            double[] inputs = values[i];
            if (load(columns, inputsOf[i], inputs)) {
                PaneCell cell = tables[i].entry(columns).cell(spec, pane);
                cell.newest = Math.max(cell.newest, micros);
                for (PaneSpec.Slot slot : slots) {
                    cell.add(slot, inputs, time);
                }
            }
        }
    }

    /** Records of one time come together: the pane is computed once for many. */
    private void enter(long micros) {
        long length = spec.paneMs() * 1000;
        paneFrom = Math.floorDiv(micros, length) * length;
        paneTo = paneFrom + length;
        pane = paneFrom / 1000;
    }

    private static boolean load(Columns columns, PaneSpec.Input[] inputs, double[] into) {
        boolean any = false;
        for (int i = 0; i < inputs.length; i++) {
            PaneSpec.Input input = inputs[i];
            into[i] = Double.NaN;
            if (input != null && !columns.isNull(input.column())
                    && (input.when() == null || input.when().test(columns) == Filter.TRUE)) {
                into[i] = input.text() ? 1 : columns.doubleAt(input.column());
                any = true;
            }
        }
        return any;
    }

    private static InternalRow row(int channel, PaneKeys.Entry entry, PaneCell cell) {
        Object[] lists = new Object[cell.lists.length];
        for (int i = 0; i < lists.length; i++) {
            PaneCell.Values list = cell.lists[i];
            lists[i] = UnsafeArrayData.fromPrimitiveArray(Arrays.copyOf(list.items, list.size));
        }
        return new GenericInternalRow(new Object[] {
            channel, entry.json, cell.pane, UnsafeArrayData.fromPrimitiveArray(cell.numbers),
            new GenericArrayData(lists), NOTHING, null, cell.newest});
    }

    @Override
    public void close() {}
}
