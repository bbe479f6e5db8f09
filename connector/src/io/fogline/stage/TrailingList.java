package io.fogline.stage;

/**
 * All values of the last n records, of those in (t - offset - length, t - offset], or of a whole
 * session, kept sorted. An evaluation costs one pass over the window.
 */
final class TrailingList extends RecordPart {
    private final ListSet lists;
    private final StageSpec.Window window;
    private final boolean timed;
    private Samples sorted;
    private Samples waiting;
    private long added;
    private long last = Long.MIN_VALUE;

    TrailingList(ListSet lists, StageSpec.Window window) {
        this.lists = lists;
        this.window = window;
        timed = window.kind() == StageSpec.WindowKind.TIME;
    }

    private void prepare() {
        if (sorted == null) {
            sorted = lists.samples();
            waiting = lists.samples();
        }
    }

    @Override
    boolean add(Records records, int record) {
        prepare();
        long time = micros(records.time(record));
        if (!lists.gather(records, record, timed ? time : added, waiting)) {
            return false;
        }
        added++;
        last = time;
        return true;
    }

    @Override
    void evaluate(long time, Results results) {
        prepare();
        switch (window.kind()) {
            case TIME -> slide(time - window.offset() * 1000, time - reach() * 1000 + 1);
            case EVENTS -> slide(Long.MAX_VALUE, added - window.length());
            default -> slide(Long.MAX_VALUE, Long.MIN_VALUE);
        }
        if (window.kind() == StageSpec.WindowKind.EVENTS && sorted.size() > 0) {
            results.startAt(Math.floorDiv(firstTime(), 1000L));
        }
        lists.evaluate(sorted, results);
    }

    private void slide(long to, long lowest) {
        int ready = 0;
        Samples fresh = lists.samples();
        while (ready < waiting.size() && waiting.rank(ready) <= to) {
            fresh.add(waiting, ready++);
        }
        if (ready == waiting.size()) {
            waiting.clear();
        } else if (ready > 0) {
            waiting.dropFirst(ready);
        }
        sorted.merge(fresh, lowest);
    }

    private long firstTime() {
        int first = 0;
        for (int i = 1; i < sorted.size(); i++) {
            first = sorted.rank(i) < sorted.rank(first) ? i : first;
        }
        return sorted.time(first);
    }

    @Override
    long reach() {
        return timed ? window.offset() + window.length() : 0;
    }

    @Override
    long expiry() {
        return added == 0 ? Long.MIN_VALUE : timed ? last + reach() * 1000 : NEVER;
    }

    @Override
    boolean isNew() {
        return added == 0;
    }

    @Override
    void reset() {
        prepare();
        sorted.clear();
        waiting.clear();
        added = 0;
        last = Long.MIN_VALUE;
    }

    @Override
    void write(StateWriter out) {
        prepare();
        out.putLong(added);
        out.putLong(last);
        sorted.write(out);
        waiting.write(out);
    }

    @Override
    void read(StateReader in) {
        prepare();
        added = in.getLong();
        last = in.getLong();
        sorted.read(in);
        waiting.read(in);
    }
}
