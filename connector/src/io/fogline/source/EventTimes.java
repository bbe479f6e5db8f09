package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Layout;
import io.fogline.decode.Record;
import io.fogline.decode.Records;
import io.fogline.decode.Times;

/**
 * The event time of decoded records: the declared field, else the record's own, else arrival. One
 * wrong clock must not end the windows of all others: a time too far ahead is none.
 */
final class EventTimes {
    private EventTimes() {}

    /** Sets the time of every record, a declared one moved; a message with a record without one is bad as a whole. */
    static void set(Records records, SourceOptions options) throws BadMessage {
        Layout layout = options.layout();
        boolean declared = layout.hasTimeField();
        long latest = options.ahead() < 0 ? Long.MAX_VALUE : records.arrival() + options.ahead() * 1000;
        for (int i = 0; i < records.size(); i++) {
            Record record = records.get(i);
            if (declared) {
                int slot = layout.timeSlot(record);
                long time = slot < 0 ? Times.NONE : Times.of(record, slot);
                if (time == Times.NONE) {
                    throw new BadMessage(slot < 0 ? "the time field is missing" : "the time field is not a time");
                }
                record.setOwnTime(time + options.timeShift());
            } else if (record.ownTime() == Record.NO_TIME) {
                record.setOwnTime(records.arrival());
            }
            if (record.ownTime() > latest) {
                throw new BadMessage("its time is more than " + options.ahead() + " ms ahead of its arrival");
            }
        }
    }
}
