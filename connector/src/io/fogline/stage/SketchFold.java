package io.fogline.stage;

import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;

/** DISTINCT over panes: the union of their HLL sketches. The estimate does not depend on the order of merging. */
final class SketchFold implements Fold<Sketch> {
    private final int column;
    private final int blob;
    private final int count;

    SketchFold(StageSpec.Aggregate aggregate, StageSpec.Channel channel) {
        Functions.check(aggregate, aggregate.partials().length == 2, "needs two partials, HLL and SUM");
        StageSpec.Partial sketch = channel.partials().get(aggregate.partials()[0]);
        StageSpec.Partial records = channel.partials().get(aggregate.partials()[1]);
        Functions.check(aggregate, sketch.kind() == PartialKind.HLL && records.kind() == PartialKind.SUM,
                "needs the partials HLL and SUM, not " + sketch.kind() + " and " + records.kind());
        column = aggregate.column();
        blob = sketch.at();
        count = records.at();
    }

    @Override
    public Sketch ofPane(Pane pane) {
        Sketch all = null;
        for (PaneRow row : pane.rows()) {
            double records = Pane.nums(row, count, 1)[count];
            byte[] bytes = Pane.blob(row, blob);
            if (bytes != null && records > 0) {
                all = join(all, new Sketch(HllSketch.heapify(bytes), records));
            }
        }
        return all;
    }

    @Override
    public Sketch ofRecord(Records records, int record) {
        throw new IllegalStateException("sketches are made from panes");
    }

    @Override
    public Sketch merge(Sketch earlier, Sketch later) {
        Union union = new Union(Math.max(earlier.sketch().getLgConfigK(), later.sketch().getLgConfigK()));
        union.update(earlier.sketch());
        union.update(later.sketch());
        return new Sketch(union.getResult(TgtHllType.HLL_8), earlier.count() + later.count());
    }

    @Override
    public void evaluate(Sketch cell, Results results) {
        if (cell != null) {
            results.set(column, Math.rint(cell.sketch().getCompositeEstimate()), cell.count());
        }
    }

    @Override
    public double count(Sketch cell) {
        return cell == null ? 0 : cell.count();
    }

    @Override
    public void write(Sketch cell, StateWriter out) {
        out.putDouble(cell.count());
        out.putBytes(cell.sketch().toCompactByteArray());
    }

    @Override
    public Sketch read(StateReader in) {
        double count = in.getDouble();
        return new Sketch(HllSketch.heapify(in.getBytes()), count);
    }
}
