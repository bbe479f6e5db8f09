package io.fogline.source;

import io.fogline.decode.Record;
import io.fogline.log.Heard;
import java.nio.file.Path;

/**
 * Moves the event time of a log's stream on while it is silent, so that windows close. What it decides
 * becomes part of an offset, so a batch that is run again decides nothing anew. Silence is what the
 * writer of the log tells: while it did not listen, nobody was silent.
 */
final class StreamClock {
    private final ClockOptions options;
    private final Path folder;
    private final long lateness;
    private final ClockGroup group;
    /** Spark forgets the times of single streams when a query ends: they are told once more. */
    private boolean mayRemind = true;

    StreamClock(SourceOptions source) {
        options = source.clock();
        folder = Path.of(source.path());
        lateness = source.lateness() * 1000;
        group = ClockGroup.join(options.group(), this);
    }

    /** To be asked before the log is: what is in it then came before or after that silence. */
    Heard heard() {
        return Heard.read(folder);
    }

    /** The stream has unread records. */
    void speaks(SourceOffset at, long newest) {
        mayRemind &= !at.isInitial();
        group.tell(this, new ClockGroup.Hand(Math.max(newest, at.clock()), newest, Record.NO_TIME, false));
    }

    /**
     * The time to tell of a stream without unread records; {@link Record#NO_TIME} for none.
     *
     * @param newest the event time of its newest record
     */
    long next(SourceOffset at, long newest, Heard heard) {
        boolean listened = heard != null && heard.position() == at.position(InputLog.NAME);
        boolean idle = options.idle() >= 0 && listened && heard.quietMs() >= options.idle();
        long time = Math.max(newest, at.clock());
        boolean paced = idle && newest != Record.NO_TIME;
        long own = paced ? newest + (heard.quietMs() - options.idle()) * 1000 : Record.NO_TIME;
        group.tell(this, new ClockGroup.Hand(time, newest, own, idle));
        if (mayRemind) {
            mayRemind = false;
            if (!at.isInitial() && time != Record.NO_TIME) {
                return time;
            }
        }
        return idle ? moved(time) : Record.NO_TIME;
    }

    private long moved(long time) {
        long target = group.timeOfIdle();
        if (target == Record.NO_TIME) {
            return Record.NO_TIME;
        }
        long last = group.newest() + options.horizon() * 1000 + lateness;
        long next = Math.min(target, last);
        boolean matters = time == Record.NO_TIME || step(next) > step(time) || next == last;
        return matters && next > time ? next : Record.NO_TIME;
    }

    private long step(long time) {
        return Math.floorDiv(time - lateness, options.step() * 1000);
    }

    void leave() {
        ClockGroup.leave(options.group(), this);
    }
}
