package io.fogline.results;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.PriorityQueue;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Where the results of a run go: a named pipe that somebody else reads, on the driver's machine. Queries
 * that write to one output take turns, a batch each. A channel, not a stream: a query that is stopped while
 * nobody reads is interrupted.
 */
public final class ResultOutput {
    private static final Map<String, ResultOutput> OPEN = new ConcurrentHashMap<>();
    private static final int BUFFER = 1 << 18;

    private final FileChannel pipe;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(BUFFER);
    private final Map<String, Long> counts = new TreeMap<>();

    private ResultOutput(FileChannel pipe) {
        this.pipe = pipe;
    }

    /** Opens the pipe at {@code path}, which is also the output's name; waits until it is read. */
    public static void open(String path) throws IOException {
        OPEN.put(path, new ResultOutput(FileChannel.open(Path.of(path), StandardOpenOption.WRITE)));
    }

    /** Whoever reads the pipe sees its end. Nothing where it is closed. */
    public static void close(String path) throws IOException {
        ResultOutput output = OPEN.remove(path);
        if (output != null) {
            output.pipe.close();
        }
    }

    /** Results so far by insight, a line {@code number insight} each. */
    public static String counts(String path) {
        StringBuilder text = new StringBuilder();
        Map<String, Long> counts = of(path).counts;
        synchronized (counts) {
            counts.forEach((insight, number) -> text.append(number).append(' ').append(insight).append('\n'));
        }
        return text.toString();
    }

    static ResultOutput of(String path) {
        ResultOutput output = OPEN.get(path);
        if (output == null) {
            throw new IllegalStateException("there is no open output " + path);
        }
        return output;
    }

    /** The results of one batch, each on a line of its own. */
    synchronized void write(List<Run> runs) throws IOException {
        List<RunReader> readers = new ArrayList<>();
        try {
            for (Run run : runs) {
                readers.add(new RunReader(run));
            }
            merge(readers);
        } finally {
            for (RunReader reader : readers) {
                reader.close();
            }
        }
        synchronized (counts) {
            runs.forEach(run -> run.counts().forEach((insight, number) -> counts.merge(insight, number, Long::sum)));
        }
    }

    private void merge(List<RunReader> readers) throws IOException {
        PriorityQueue<RunReader> queue = new PriorityQueue<>();
        for (RunReader reader : readers) {
            if (reader.next()) {
                queue.add(reader);
            }
        }
        buffer.clear();
        while (!queue.isEmpty()) {
            RunReader first = queue.poll();
            RunReader second = queue.peek();
            boolean more = true;
            while (more && (second == null || first.compareTo(second) <= 0)) {
                put(first.text());
                more = first.next();
            }
            if (more) {
                queue.add(first);
            }
        }
        flush();
    }

    private void put(ByteBuffer text) throws IOException {
        while (text.remaining() >= buffer.remaining()) {
            ByteBuffer part = text.slice(text.position(), buffer.remaining());
            text.position(text.position() + part.remaining());
            buffer.put(part);
            flush();
        }
        buffer.put(text).put((byte) '\n');
    }

    private void flush() throws IOException {
        buffer.flip();
        while (buffer.hasRemaining()) {
            pipe.write(buffer);
        }
        buffer.clear();
    }
}
