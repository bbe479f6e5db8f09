package io.fogline.sink;

import io.fogline.log.LogFolder;
import io.fogline.log.LogFull;
import io.fogline.log.LogWriter;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The writer of one log, shared by all queries of this process. Whole batches are committed at once;
 * single rows are gathered for as long as the commit before them takes, a few milliseconds at least
 * while they keep coming, so that many share a commit.
 * A full disk holds rows back until there is space again.
 */
final class SharedLog {
    private static final int MOST_WAITING = 100_000;
    private static final long SPACE_CHECK_MS = 1000;
    private static final long COMMIT_EVERY = TimeUnit.MILLISECONDS.toNanos(3);
    private static final Map<Path, SharedLog> OPEN = new HashMap<>();

    private final Path folder;
    private final LogWriter writer;
    private RecordList waiting = new RecordList();
    private long source;
    private long added;
    private long written;
    private IOException failure;
    private Thread flusher;
    private int users;
    private boolean closing;

    private SharedLog(Path folder, String log) throws IOException {
        this.folder = folder;
        writer = new LogWriter(folder, log);
    }

    /** The log below {@code root}; it is open until everyone who asked for it has {@link #release}d it. */
    static SharedLog of(String root, String log) throws IOException {
        Path folder = LogFolder.of(Path.of(root), log);
        synchronized (OPEN) {
            SharedLog found = OPEN.get(folder);
            if (found == null) {
                found = new SharedLog(folder, log);
                OPEN.put(folder, found);
            }
            found.users++;
            return found;
        }
    }

    /** Lets the log go; the last one closes it, so that another process may write it. */
    void release() throws IOException {
        synchronized (OPEN) {
            if (--users > 0) {
                return;
            }
            OPEN.remove(folder);
            // A task that is stopped is interrupted: it must let go of the log all the same.
            boolean interrupted = Thread.interrupted();
            try {
                interrupted |= end();
                writer.close();
            } finally {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
            }
        }
    }

    /** Everything handed over is written, or has failed; then the thread ends. Whether one was interrupted. */
    private synchronized boolean end() {
        boolean interrupted = false;
        closing = true;
        notifyAll();
        while (flusher != null) {
            try {
                wait();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        return interrupted;
    }

    /** Appends a batch as one commit; does nothing when the log has it already. */
    void commit(long source, long epoch, RecordList records) throws IOException {
        synchronized (writer) {
            if (writer.lastEpoch(source) >= epoch) {
                return;
            }
            append(source, epoch, records);
        }
    }

    private void append(long source, long epoch, RecordList records) throws IOException {
        for (int i = 0; i < records.size(); i++) {
            byte[] payload = records.payload(i);
            writer.append(source, epoch, records.topic(i), payload, 0, payload.length);
        }
        writer.commit();
    }

    /** Hands a row over; waits while too many are on their way already. */
    synchronized void add(long source, byte[] topic, byte[] payload) throws IOException {
        while (waiting.size() >= MOST_WAITING && failure == null) {
            await();
        }
        raiseFailure();
        this.source = source;
        waiting.add(topic, payload);
        added++;
        startFlusher();
        notifyAll();
    }

    /** Returns when everything added so far is on disk. */
    synchronized void flush() throws IOException {
        long wanted = added;
        while (written < wanted && failure == null) {
            await();
        }
        raiseFailure();
    }

    private void startFlusher() {
        if (flusher == null) {
            flusher = new Thread(this::run, "log " + folder.getFileName());
            flusher.setDaemon(true);
            flusher.start();
        }
    }

    private void run() {
        while (true) {
            RecordList taken = take();
            if (taken == null) {
                return;
            }
            long begun = System.nanoTime();
            try {
                writeAll(taken);
                note(taken.size(), null);
            } catch (IOException e) {
                note(0, e);
                return;
            } catch (RuntimeException e) {
                note(0, new IOException("cannot write " + folder, e));
                return;
            }
            LockSupport.parkNanos(begun + COMMIT_EVERY - System.nanoTime());
        }
    }

    /** What waits, as soon as something does; null when nothing will any more. */
    private synchronized RecordList take() {
        while (waiting.size() == 0 && !closing) {
            await();
        }
        if (waiting.size() == 0) {
            flusher = null;
            notifyAll();
            return null;
        }
        RecordList taken = waiting;
        waiting = new RecordList();
        notifyAll();
        return taken;
    }

    private void writeAll(RecordList records) throws IOException {
        while (true) {
            try {
                synchronized (writer) {
                    append(source, -1, records);
                }
                return;
            } catch (LogFull e) {
                if (isClosing()) {
                    throw e; // nobody waits for these rows any more
                }
                pause();
            }
        }
    }

    private synchronized boolean isClosing() {
        return closing;
    }

    private synchronized void note(int records, IOException problem) {
        written += records;
        failure = problem;
        flusher = problem == null ? flusher : null;
        notifyAll();
    }

    /** Tells a failure once: the query that gets it starts again from its checkpoint. */
    private void raiseFailure() throws IOException {
        if (failure != null) {
            IOException told = failure;
            failure = null;
            waiting = new RecordList();
            written = added;
            throw told;
        }
    }

    private static void pause() throws IOException {
        try {
            Thread.sleep(SPACE_CHECK_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted while waiting for space", e);
        }
    }

    private void await() {
        try {
            wait();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException("interrupted while writing " + folder, e);
        }
    }
}
