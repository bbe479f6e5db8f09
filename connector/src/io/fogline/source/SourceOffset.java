package io.fogline.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.fogline.decode.Record;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.spark.sql.connector.read.streaming.Offset;

/**
 * How far a stream was read, and everything else that decides what the batch ending here holds. It
 * is what Spark's checkpoint keeps, so a batch that is run again sees the same and does the same.
 */
final class SourceOffset extends Offset {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** Position in every file at the end of the batch, and at its start. */
    private final SortedMap<String, Long> files;
    private final SortedMap<String, Long> from;
    private final long newest;
    private final long arrival;
    private final double fraction;
    private final boolean ended;
    private final long skip;
    private final long clock;
    private final long ticks;

    /**
     * @param newest newest event time of all earlier batches, in microseconds
     * @param arrival when the batch was planned, in milliseconds
     * @param fraction live sampling fraction of the batch
     * @param ended the end row was produced in this batch or before
     * @param skip rows of the frame at the end that were taken already (real time only)
     * @param clock the event time that was last told without a record, in microseconds
     * @param ticks how often one was told; a batch with a further one holds no records
     */
    SourceOffset(
            SortedMap<String, Long> files,
            SortedMap<String, Long> from,
            long newest,
            long arrival,
            double fraction,
            boolean ended,
            long skip,
            long clock,
            long ticks) {
        this.files = files;
        this.from = from;
        this.newest = newest;
        this.arrival = arrival;
        this.fraction = fraction;
        this.ended = ended;
        this.skip = skip;
        this.clock = clock;
        this.ticks = ticks;
    }

    static SourceOffset initial(SortedMap<String, Long> firsts) {
        return new SourceOffset(firsts, new TreeMap<>(), Record.NO_TIME, 0, 1, false, 0, Record.NO_TIME, 0);
    }

    /** The end of a batch that holds no records, but tells of an event time. */
    SourceOffset ticked(long newestSoFar, long time) {
        return new SourceOffset(
                files, new TreeMap<>(), newestSoFar, arrival, fraction, ended, skip, time, ticks + 1);
    }

    /** Whether nothing has been read yet. */
    boolean isInitial() {
        return arrival == 0 && ticks == 0;
    }

    /** Where a real-time batch that began at this offset has come to. */
    SourceOffset reached(String file, long position, long skip) {
        SortedMap<String, Long> end = new TreeMap<>(files);
        end.put(file, position);
        return new SourceOffset(end, new TreeMap<>(), newest, arrival, fraction, ended, skip, clock, ticks);
    }

    /** The offset itself, also where Spark has it only as its checkpoint keeps it. */
    static SourceOffset of(Offset offset) {
        return offset instanceof SourceOffset known ? known : parse(offset.json());
    }

    static SourceOffset parse(String text) {
        try {
            JsonNode node = JSON.readTree(text);
            return new SourceOffset(
                    positions(node.path("files")),
                    positions(node.path("from")),
                    node.path("newest").asLong(Record.NO_TIME),
                    node.path("arrival").asLong(),
                    node.path("fraction").asDouble(1),
                    node.path("ended").asBoolean(),
                    node.path("skip").asLong(),
                    node.path("clock").asLong(Record.NO_TIME),
                    node.path("ticks").asLong());
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("the checkpoint holds no offset of a fogline source: " + text, e);
        }
    }

    private static SortedMap<String, Long> positions(JsonNode node) {
        SortedMap<String, Long> positions = new TreeMap<>();
        for (Map.Entry<String, JsonNode> file : node.properties()) {
            positions.put(file.getKey(), file.getValue().asLong());
        }
        return positions;
    }

    @Override
    public String json() {
        ObjectNode node = JSON.createObjectNode();
        files.forEach(node.putObject("files")::put);
        from.forEach(node.putObject("from")::put);
        if (newest != Record.NO_TIME) {
            node.put("newest", newest);
        }
        node.put("arrival", arrival);
        node.put("fraction", fraction);
        node.put("ended", ended);
        if (skip > 0) {
            node.put("skip", skip);
        }
        if (ticks > 0) {
            node.put("clock", clock);
            node.put("ticks", ticks);
        }
        return node.toString();
    }

    SortedMap<String, Long> files() {
        return files;
    }

    SortedMap<String, Long> from() {
        return from;
    }

    long position(String file) {
        return files.getOrDefault(file, 0L);
    }

    long newest() {
        return newest;
    }

    long arrival() {
        return arrival;
    }

    double fraction() {
        return fraction;
    }

    boolean ended() {
        return ended;
    }

    long skip() {
        return skip;
    }

    long clock() {
        return clock;
    }

    long ticks() {
        return ticks;
    }
}
