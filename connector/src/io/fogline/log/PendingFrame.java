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
        size = Format.HEAD;
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

    /** Completes the frame, which is then {@code bytes()[0, size())}, for its place in the log. */
    void seal(boolean last, long position, long number) {
        Format.put32(bytes, 0, Format.MARKER);
        Format.put32(bytes, 12, size - Format.HEAD);
        Format.put64(bytes, 16, position);
        Format.put64(bytes, 24, number);
        Format.put32(bytes, 32, count);
        bytes[Format.FLAGS] = (byte) (last ? Format.LAST : 0);
        Format.put64(bytes, Format.FLAGS + Format.ARRIVAL, arrival);
        Format.put64(bytes, Format.FLAGS + Format.SOURCE, source);
        Format.put64(bytes, Format.FLAGS + Format.EPOCH, epoch);
        Format.put32(bytes, 8, Format.crc(bytes, Format.SUMS, Format.HEAD - Format.SUMS));
        Format.put32(bytes, 4, Format.crc(bytes, 8, size - 8));
    }

    int count() {
        return count;
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
