package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.Layout;
import io.fogline.decode.Record;
import io.fogline.decode.Records;
import io.fogline.decode.Times;

/** The event time of decoded records: the declared field, else the record's own, else arrival. */
final class EventTimes {
    private EventTimes() {}

    /** Sets the time of every record, a declared one moved by {@code shift} microseconds; a message with a record without one is bad as a whole. */
    static void set(Records records, Layout layout, long shift) throws BadMessage {
        boolean declared = layout.hasTimeField();
        for (int i = 0; i < records.size(); i++) {
            Record record = records.get(i);
            if (declared) {
                int slot = layout.timeSlot(record);
                long time = slot < 0 ? Times.NONE : Times.of(record, slot);
                if (time == Times.NONE) {
                    throw new BadMessage(slot < 0 ? "the time field is missing" : "the time field is not a time");
                }
                record.setOwnTime(time + shift);
            } else if (record.ownTime() == Record.NO_TIME) {
                record.setOwnTime(records.arrival());
            }
        }
    }
}
