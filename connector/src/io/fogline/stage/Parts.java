package io.fogline.stage;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * Turns the aggregates of a node into the parts that compute them; aggregates that look at the same
 * window of the same data share a part. What cannot be computed is refused here, before anything runs.
 */
final class Parts {
    private final StageSpec spec;
    private final StageSpec.NodeSpec node;
    private final StageSpec.Channel channel;
    private final Map<List<Object>, Object> shared = new HashMap<>();

    private Parts(StageSpec spec, StageSpec.NodeSpec node) {
        this.spec = spec;
        this.node = node;
        this.channel = spec.channels().get(node.channel());
    }

    static Results results(StageSpec.NodeSpec node) {
        boolean texts = node.aggregates().stream().anyMatch(Functions::isText);
        return new Results(node.id(), node.aggregates().size(), texts);
    }

    /** The inputs that any aggregate of a record-fed node looks at. */
    static int[] inputs(StageSpec.NodeSpec node) {
        return node.aggregates().stream().flatMapToInt(aggregate -> Arrays.stream(aggregate.inputs()))
                .distinct().toArray();
    }

    /** The inputs that order records of one time: all but those that are only counted as distinct. */
    static int[] ordering(StageSpec.NodeSpec node) {
        return node.aggregates().stream().filter(aggregate -> !aggregate.function().equals("DISTINCT"))
                .flatMapToInt(aggregate -> Arrays.stream(aggregate.inputs())).distinct().toArray();
    }

    /** The gap of a session node, which all its session windows share. */
    static long gap(StageSpec.NodeSpec node) {
        long[] gaps = node.aggregates().stream().map(StageSpec.Aggregate::window)
                .filter(window -> window.kind() == StageSpec.WindowKind.SESSION)
                .mapToLong(StageSpec.Window::length).distinct().toArray();
        if (gaps.length != 1) {
            throw new IllegalArgumentException("stage: node " + node.id() + " needs session windows of one gap, not of "
                    + gaps.length);
        }
        return gaps[0];
    }

    /** The parts of an {@code every} node. */
    static List<CellWindow> ofCells(StageSpec spec, StageSpec.NodeSpec node) {
        Parts parts = new Parts(spec, node);
        List<CellWindow> made = new ArrayList<>();
        for (StageSpec.Aggregate aggregate : node.aggregates()) {
            switch (aggregate.window().kind()) {
                case TIME -> parts.timed(aggregate, made);
                case RUNNING -> parts.running(aggregate, made);
                case EVENTS -> {
                    List<RecordPart> records = new ArrayList<>();
                    parts.record(aggregate, records);
                    records.forEach(part -> made.add(parts.running(fed(part, aggregate), aggregate)));
                }
                default -> throw refused(node, aggregate);
            }
        }
        return made;
    }

    /** The parts of the aggregates of a record-fed node whose window is of one of these kinds. */
    static List<RecordPart> ofRecords(
            StageSpec spec, StageSpec.NodeSpec node, StageSpec.WindowKind... kinds) {
        Parts parts = new Parts(spec, node);
        Set<StageSpec.WindowKind> asked = EnumSet.copyOf(Arrays.asList(kinds));
        List<RecordPart> made = new ArrayList<>();
        for (StageSpec.Aggregate aggregate : node.aggregates()) {
            parts.checkRecordFed(aggregate);
            if (asked.contains(aggregate.window().kind())) {
                parts.record(aggregate, made);
            }
        }
        return made;
    }

    private void checkRecordFed(StageSpec.Aggregate aggregate) {
        Functions.check(aggregate, aggregate.inputs().length > 0, "in node " + node.id() + " needs inputs, not partials");
        StageSpec.WindowKind kind = aggregate.window().kind();
        boolean session = node.kind() == StageSpec.NodeKind.SESSION;
        boolean fits = kind == StageSpec.WindowKind.RUNNING || session == (kind == StageSpec.WindowKind.SESSION);
        if (!fits) {
            throw refused(node, aggregate);
        }
    }

    private static IllegalArgumentException refused(StageSpec.NodeSpec node, StageSpec.Aggregate aggregate) {
        return new IllegalArgumentException("stage: node " + node.id() + ": " + aggregate.function() + " over a window '"
                + aggregate.window().kind() + "' is not possible in a node '" + node.kind() + "'");
    }

    private void timed(StageSpec.Aggregate aggregate, List<CellWindow> made) {
        StageSpec.Window window = aggregate.window();
        NumericFunction numeric = Functions.numeric(aggregate);
        ListFunction list = Functions.list(aggregate);
        if (numeric != null) {
            share(FoldSet.class, List.of("fold", window), FoldSet::new, set ->
                    made.add(new FoldWindow<>(set, node, window, spec.paneMs()))).add(aggregate, numeric, channel);
        } else if (Functions.isForecast(aggregate)) {
            made.add(new ForecastWindow(Holt.of(aggregate), means(aggregate), node, window, spec.paneMs()));
        } else if (Functions.isSketch(aggregate)) {
            made.add(new FoldWindow<>(new SketchFold(aggregate, channel), node, window, spec.paneMs()));
        } else if (list != null) {
            share(ListSet.class, source("list", aggregate), () -> new ListSet(aggregate, channel), set ->
                    made.add(new ListWindow(set, node, window, spec.paneMs()))).add(aggregate, list);
        } else {
            throw Functions.ordered(aggregate) == null ? Functions.unknown(aggregate) : refused(node, aggregate);
        }
    }

    private void running(StageSpec.Aggregate aggregate, List<CellWindow> made) {
        NumericFunction numeric = Functions.numeric(aggregate);
        OrderedFunction ordered = Functions.ordered(aggregate);
        if (numeric != null) {
            share(FoldSet.class, List.of("running", aggregate.window()), FoldSet::new, set ->
                    made.add(running(new RunningWindow.OfPanes<>(set), aggregate))).add(aggregate, numeric, channel);
        } else if (Functions.isSketch(aggregate)) {
            made.add(running(new RunningWindow.OfPanes<>(new SketchFold(aggregate, channel)), aggregate));
        } else if (ordered != null) {
            made.add(running(fed(new OrderedPart(ordered, aggregate), aggregate), aggregate));
        } else {
            throw notRunning(aggregate);
        }
    }

    private static RunningWindow.Inner fed(RecordPart part, StageSpec.Aggregate aggregate) {
        return new RunningWindow.OfRecords(part, aggregate.inputs());
    }

    private RunningWindow running(RunningWindow.Inner inner, StageSpec.Aggregate aggregate) {
        return new RunningWindow(inner, node, aggregate.window(), spec.paneMs());
    }

    private IllegalArgumentException notRunning(StageSpec.Aggregate aggregate) {
        boolean known = Functions.isForecast(aggregate) || Functions.list(aggregate) != null;
        return known ? refused(node, aggregate) : Functions.unknown(aggregate);
    }

    private void record(StageSpec.Aggregate aggregate, List<RecordPart> made) {
        StageSpec.Window window = aggregate.window();
        boolean unbounded = window.kind() == StageSpec.WindowKind.RUNNING || window.kind() == StageSpec.WindowKind.SESSION;
        NumericFunction numeric = Functions.numeric(aggregate);
        ListFunction list = Functions.list(aggregate);
        OrderedFunction ordered = Functions.ordered(aggregate);
        Functions.check(aggregate, aggregate.inputs().length > 0, "over records needs inputs, not partials");
        if (numeric != null && window.kind() == StageSpec.WindowKind.EVENTS) {
            FoldSet own = new FoldSet();
            own.add(aggregate, numeric, channel);
            made.add(new TrailingFold<>(own, window));
        } else if (numeric != null) {
            share(FoldSet.class, List.of("fold", window), FoldSet::new, set ->
                    made.add(unbounded ? new RunningFold<>(set) : spec.live() ? new GrainFold<>(set, window)
                            : new TrailingFold<>(set, window)))
                    .add(aggregate, numeric, channel);
        } else if (Functions.isForecast(aggregate)) {
            made.add(new TrailingForecast(Holt.of(aggregate), aggregate));
        } else if (list != null && window.kind() != StageSpec.WindowKind.RUNNING) {
            ListSet set = share(ListSet.class, source("list", aggregate), () -> new ListSet(aggregate, channel), fresh ->
                    made.add(new TrailingList(fresh, window)));
            set.add(aggregate, list);
            set.keepTimes();
        } else if (ordered != null && window.kind() == StageSpec.WindowKind.RUNNING) {
            made.add(new OrderedPart(ordered, aggregate));
        } else {
            throw ordered != null ? refused(node, aggregate) : notRunning(aggregate);
        }
    }

    private FoldSet means(StageSpec.Aggregate aggregate) {
        FoldSet set = new FoldSet();
        set.add(aggregate, BasicFunctions.mean(), channel);
        return set;
    }

    private static List<Object> source(String kind, StageSpec.Aggregate aggregate) {
        return List.of(kind, aggregate.window(), Arrays.toString(aggregate.inputs()),
                Arrays.toString(aggregate.partials()));
    }

    /** What is kept under the key; made, and given to {@code use} once, when it is asked for first. */
    private <T> T share(Class<T> type, List<Object> key, Supplier<T> make, Consumer<T> use) {
        Object found = shared.get(key);
        if (found == null) {
            T fresh = make.get();
            shared.put(key, fresh);
            use.accept(fresh);
            return fresh;
        }
        return type.cast(found);
    }
}
