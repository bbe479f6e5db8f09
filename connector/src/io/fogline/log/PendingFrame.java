package io.fogline.log;

import java.util.Arrays;

/** The frame that is being filled: its bytes as they will be written. */
final class PendingFrame {
    private byte[] bytes = new byte[64 << 10];
    private int size;
    private int count;
    private byte[] topic;
    private long source;
    private long epoch;
    private long arrival;

    void begin(long source, long epoch, long arrival) {
        this.source = source;
        this.epoch = epoch;
        this.arrival = arrival;
        clear();
    }

    void clear() {
        size = Format.FRAME;
        count = 0;
        topic = null;
    }

    boolean isEmpty() {
        return count == 0;
    }

    boolean isFull() {
        return size >= Format.FRAME_BYTES;
    }

    boolean isOf(long source, long epoch) {
        return this.source == source && this.epoch == epoch;
    }

    void add(byte[] topic, byte[] payload, int from, int to) {
        boolean same = Arrays.equals(topic, this.topic);
        int length = to - from;
        reserve(length + topic.length + 7);
        Format.put32(bytes, size, length);
        Format.put16(bytes, size + 4, same ? Format.SAME_TOPIC : topic.length);
        size += 6;
        if (!same) {
            put(topic, 0, topic.length);
            this.topic = topic.clone();
        }
        put(payload, from, length);
        bytes[size++] = '\n';
        count++;
    }

    private void put(byte[] from, int at, int length) {
        System.arraycopy(from, at, bytes, size, length);
        size += length;
    }

    private void reserve(int more) {
        if (size + more > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(size + more, bytes.length * 2));
        }
    }

    /** Completes the frame, which is then {@code bytes()[0, size())}. */
    void seal(boolean last) {
        int length = size - Format.PREFIX;
        bytes[8] = (byte) (last ? Format.LAST : 0);
        Format.put64(bytes, 9, arrival);
        Format.put64(bytes, 17, source);
        Format.put64(bytes, 25, epoch);
        Format.put32(bytes, 33, count);
        Format.put32(bytes, 0, length);
        Format.put32(bytes, 4, Format.crc(bytes, Format.PREFIX, length));
    }

    byte[] bytes() {
        return bytes;
    }

    int size() {
        return size;
    }

    long source() {
        return source;
    }

    long epoch() {
        return epoch;
    }

    long arrival() {
        return arrival;
    }
}
