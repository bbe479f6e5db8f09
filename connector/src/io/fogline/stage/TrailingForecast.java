package io.fogline.stage;

/** FORECAST over records: the buckets of its window end with the evaluation, and contain their later edge. */
final class TrailingForecast extends RecordPart {
    private final Holt holt;
    private final int[] inputs;
    private final StageSpec.Window window;
    private final Cells<Double> values = new Cells<>();
    private final double[] scratch = new double[1];

    TrailingForecast(Holt holt, StageSpec.Aggregate aggregate) {
        this.holt = holt;
        inputs = aggregate.inputs();
        window = aggregate.window();
        Functions.check(aggregate, inputs.length == 1, "needs one input");
    }

    @Override
    boolean add(Records records, int record) {
        if (!records.copyInputs(record, inputs, scratch)) {
            return false;
        }
        values.push(micros(records.time(record)), scratch[0]);
        return true;
    }

    @Override
    void evaluate(long time, Results results) {
        long to = time - window.offset() * 1000;
        while (values.size() > 0 && values.key(0) <= to - window.length() * 1000) {
            values.drop(1);
        }
        int held = 0;
        while (held < values.size() && values.key(held) <= to) {
            held++;
        }
        if (held > 0) {
            results.set(holt.column(), forecast(to, held), held);
        }
    }

    private double forecast(long to, int held) {
        long bucket = holt.bucketMs() * 1000;
        double[] sums = new double[(int) ((to - values.key(0)) / bucket) + 1];
        double[] counts = new double[sums.length];
        for (int i = 0; i < held; i++) {
            int at = sums.length - 1 - (int) ((to - values.key(i)) / bucket);
            sums[at] += values.cell(i);
            counts[at]++;
        }
        return holt.forecast(sums, counts);
    }

    @Override
    long reach() {
        return window.offset() + window.length();
    }

    @Override
    long expiry() {
        if (values.size() == 0) {
            return Long.MIN_VALUE;
        }
        return values.key(values.size() - 1) + reach() * 1000;
    }

    @Override
    boolean isNew() {
        return values.size() == 0;
    }

    @Override
    void reset() {
        values.clear();
    }

    @Override
    void write(StateWriter out) {
        values.write(out, (value, writer) -> writer.putDouble(value));
    }

    @Override
    void read(StateReader in) {
        values.read(in, StateReader::getDouble);
    }
}
