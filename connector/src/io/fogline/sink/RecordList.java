package io.fogline.sink;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;

/** Records on their way to a log, in order. */
final class RecordList implements Serializable {
    private final List<byte[]> topics = new ArrayList<>();
    private final List<byte[]> payloads = new ArrayList<>();

    void add(byte[] topic, byte[] payload) {
        topics.add(topic);
        payloads.add(payload);
    }

    void addAll(RecordList others) {
        topics.addAll(others.topics);
        payloads.addAll(others.payloads);
    }

    int size() {
        return topics.size();
    }

    byte[] topic(int record) {
        return topics.get(record);
    }

    byte[] payload(int record) {
        return payloads.get(record);
    }
}
