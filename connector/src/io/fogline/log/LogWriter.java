package io.fogline.log;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The one writer of a log; for one thread at a time. When {@link #append} or {@link #commit} throws,
 * everything since the last commit is taken back and the writer stays usable; should even that fail,
 * every later call says so until the log is opened again (as may happen to an interrupted thread).
 */
public final class LogWriter implements AutoCloseable {
    public static final long SEGMENT_BYTES = 64 << 20;
    public static final long MIN_FREE_BYTES = 64 << 20;

    private final Path folder;
    private final long segmentBytes;
    private final long minFreeBytes;
    private final LogLock lock;
    private final RandomAccessFile committedFile;
    private final Map<Long, Long> epochs;
    private final Map<Long, Long> newEpochs = new HashMap<>();
    private final PendingFrame pending = new PendingFrame();
    private Segment segment;
    private RandomAccessFile file;
    private Committed.End committed;
    private long end;
    /** That of the next record. */
    private long number;
    /** Whether there may be something behind {@code committed} in the files. */
    private boolean written;
    private boolean usable = true;
    private boolean closed;

    public LogWriter(Path folder, String topic) throws IOException {
        this(folder, topic, SEGMENT_BYTES, MIN_FREE_BYTES);
    }

    /** Makes the log if it is new, else repairs it. */
    public LogWriter(Path folder, String topic, long segmentBytes, long minFreeBytes) throws IOException {
        this.folder = folder;
        this.segmentBytes = segmentBytes;
        this.minFreeBytes = minFreeBytes;
        Files.createDirectories(folder);
        lock = new LogLock(folder);
        RandomAccessFile opened = null;
        try {
            claim(topic);
            opened = new RandomAccessFile(folder.resolve(Committed.NAME).toFile(), "rw");
            repair(opened);
            epochs = Sources.until(folder, end);
        } catch (IOException | RuntimeException e) {
            if (opened != null) {
                opened.close();
            }
            lock.close();
            throw e;
        }
        committedFile = opened;
    }

    /**
     * The file {@code topic} says which topic this is; another one in it means a wrong folder, unless the
     * folder has the topic's name: then it is damaged and written anew.
     */
    private void claim(String topic) throws IOException {
        byte[] raw = topic.getBytes(StandardCharsets.UTF_8);
        checkTopic(raw);
        Path path = folder.resolve("topic");
        boolean own = folder.getFileName().toString().equals(LogFolder.name(topic));
        byte[] said = Files.exists(path) ? Files.readAllBytes(path) : new byte[0];
        boolean right = Arrays.equals(said, raw);
        if (said.length == 0 || own && !right) {
            Disk.replace(path, topic);
            Disk.sync(folder.toAbsolutePath().getParent());
        } else if (!right) {
            throw new LogException(folder + " is the log of another topic (see " + path + ")");
        }
    }

    private void repair(RandomAccessFile file) throws IOException {
        Committed.End claimed = Committed.load(file);
        if (claimed == null) {
            Segments.requireCurrent(folder);
        }
        committed = LogRepair.findEnd(folder, claimed);
        end = committed.position();
        number = committed.number();
        LogRepair.cut(folder, end);
        LogRepair.syncFrom(folder, claimed == null ? 0 : Math.min(claimed.position(), end));
        Committed.shorten(file);
        Committed.store(file, committed);
        file.getFD().sync();
        if (claimed == null && end > 0) {
            new DamageNotes(folder).noteCommitted(end);
        }
    }

    /** The end of the last commit. */
    public long position() {
        return committed.position();
    }

    /** The epoch in the last committed frame of a source, -1 when there is none. */
    public long lastEpoch(long source) {
        return epochs.getOrDefault(source, -1L);
    }

    /** Adds a record to the commit that is being made; nothing of it can be read before {@link #commit}. */
    public void append(long source, long epoch, byte[] topic, byte[] bytes, int from, int to) throws IOException {
        try {
            checkTopic(topic);
            if (to - from > Format.MAX_PAYLOAD) {
                throw new LogException("a payload has at most " + Format.MAX_PAYLOAD + " bytes, not " + (to - from));
            }
            begin(source, epoch);
            pending.add(topic, bytes, from, to);
        } catch (IOException | RuntimeException e) {
            throw failed(e);
        }
    }

    private static void checkTopic(byte[] topic) throws LogException {
        if (topic.length == 0 || topic.length >= Format.SAME_TOPIC) {
            throw new LogException("a topic has 1 to 65534 bytes, not " + topic.length);
        }
    }

    /** There is room in a pending frame of this source and epoch. */
    private void begin(long source, long epoch) throws IOException {
        if (!usable) {
            throw new LogException("the log " + folder + " is closed or failed: open it again");
        }
        if (pending.isEmpty()) {
            pending.begin(source, epoch, now());
        } else if (!pending.isOf(source, epoch)) {
            write(false);
            pending.begin(source, epoch, now());
        } else if (pending.isFull()) {
            write(false);
            pending.begin(source, epoch, pending.arrival());
        }
    }

    private static long now() {
        java.time.Instant now = java.time.Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    /** Everything appended is on disk and visible to readers; returns the log's end. */
    public long commit() throws IOException {
        if (pending.isEmpty()) {
            return committed.position();
        }
        Committed.End reached;
        try {
            write(true);
            file.getFD().sync();
            if (segment.first() >= committed.position()) {
                Disk.sync(folder);
            }
            reached = new Committed.End(end, number);
            Committed.store(committedFile, reached);
        } catch (IOException | RuntimeException e) {
            throw failed(e);
        }
        committed = reached;
        written = false;
        pending.clear();
        epochs.putAll(newEpochs);
        newEpochs.clear();
        return committed.position();
    }

    /** Takes back everything since the last commit. */
    public void rollback() throws IOException {
        pending.clear();
        newEpochs.clear();
        if (!written || !usable) {
            return;
        }
        usable = false;
        closeSegment();
        LogRepair.cut(folder, committed.position());
        end = committed.position();
        number = committed.number();
        written = false;
        usable = true;
    }

    private IOException failed(Exception cause) {
        try {
            rollback();
        } catch (IOException e) {
            cause.addSuppressed(e);
        }
        if (cause instanceof LogException known) {
            return known;
        }
        String message = String.valueOf(cause.getMessage());
        boolean space = message.contains("No space") || message.contains("too large") || message.contains("quota");
        return space
                ? new LogFull("no space left for the log " + folder, cause)
                : new LogException("cannot write the log " + folder + ": " + message, cause);
    }

    private void write(boolean last) throws IOException {
        if (Files.getFileStore(folder).getUsableSpace() - pending.size() < minFreeBytes) {
            String kept = minFreeBytes + " bytes are kept free";
            throw new LogFull("no space left for the log " + folder + ": " + kept, null);
        }
        written = true;
        openSegmentFor(pending.size());
        pending.seal(last, end, number);
        file.seek(end - segment.first());
        file.write(pending.bytes(), 0, pending.size());
        end += pending.size();
        number += pending.count();
        if (pending.source() != 0) {
            newEpochs.put(pending.source(), pending.epoch());
        }
    }

    private void openSegmentFor(int size) throws IOException {
        if (segment == null) {
            reopen();
        }
        boolean room = segment != null
                && (end == segment.frames() || end + size - segment.first() <= segmentBytes);
        if (!room) {
            roll();
        }
    }

    /** Opens the last segment, unless its end is missing: frames must not go on before that. */
    private void reopen() throws IOException {
        List<Segment> segments = Segments.list(folder);
        if (!segments.isEmpty() && segments.get(segments.size() - 1).end() == end) {
            segment = segments.get(segments.size() - 1);
            file = new RandomAccessFile(segment.path().toFile(), "rw");
        }
    }

    /** Begins a new segment; everything before it, and what {@code committed} says, is on disk. */
    private void roll() throws IOException {
        if (segment != null) {
            file.getFD().sync();
            closeSegment();
        }
        if (end > 0) {
            committedFile.getFD().sync();
            Sources.store(folder, committed.position(), epochs);
        }
        segment = Segment.of(folder, end);
        file = new RandomAccessFile(segment.path().toFile(), "rw");
        end += Format.HEADER;
        file.write(Format.header(segment.first()));
    }

    private void closeSegment() throws IOException {
        if (segment != null) {
            segment = null;
            file.close();
        }
    }

    /** Takes back what is not committed and lets the next writer in. */
    @Override
    public void close() throws IOException {
        if (closed) {
            return;
        }
        closed = true;
        try {
            rollback();
            closeSegment();
        } finally {
            usable = false;
            committedFile.close();
            lock.close();
        }
    }
}
