package io.fogline.source;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import io.fogline.decode.Bytes;
import java.io.BufferedOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import java.util.Base64;
import java.util.UUID;

/**
 * Keeps the bad and late records of one slice in a file named after the slice. The file appears under
 * its name only when the slice was read to its end, and a second reading of the slice replaces it, so
 * every reject is there exactly once. Without rejects there is no file.
 */
final class Rejects implements Closeable {
    private static final int MAX_RECORD = 64 << 10;
    private static final JsonFactory JSON = new JsonFactory();

    private final String stream;
    private final Slice slice;
    private final Path target;
    private Path unfinished;
    private JsonGenerator out;

    /** {@code folder} null: rejects are not kept. */
    Rejects(String folder, String stream, Slice slice) {
        this.stream = stream;
        this.slice = slice;
        String name = stream.replaceAll("[^A-Za-z0-9._-]", "_") + "-" + slice.id() + ".ndjson";
        this.target = folder == null ? null : Path.of(folder, name);
    }

    /** The message that {@code messages} is at is bad, or holds a late record. */
    void add(String kind, String reason, Messages messages) throws IOException {
        if (target == null) {
            return;
        }
        if (out == null) {
            open();
        }
        out.writeStartObject();
        out.writeStringField("stream", stream);
        out.writeStringField("kind", kind);
        out.writeStringField("reason", reason);
        out.writeStringField("file", slice.file());
        out.writeNumberField("position", messages.position());
        byte[] topic = messages.topic();
        if (topic != null) {
            out.writeStringField("topic", new String(topic, StandardCharsets.UTF_8));
        }
        content(messages.bytes(), messages.from(), messages.to());
        out.writeEndObject();
        out.writeRaw('\n');
    }

    private void content(byte[] bytes, int from, int to) throws IOException {
        int end = Math.min(to, from + MAX_RECORD);
        if (end < to) {
            // Not in the middle of a character.
            for (int i = 0; i < 3 && (bytes[end] & 0xc0) == 0x80; i++) {
                end--;
            }
        }
        if (Bytes.isUtf8(bytes, from, end)) {
            out.writeStringField("record", new String(bytes, from, end - from, StandardCharsets.UTF_8));
        } else {
            byte[] content = Arrays.copyOfRange(bytes, from, end);
            out.writeStringField("base64", Base64.getEncoder().encodeToString(content));
        }
    }

    private void open() throws IOException {
        Files.createDirectories(target.getParent());
        unfinished = target.resolveSibling("." + target.getFileName() + "." + UUID.randomUUID() + ".tmp");
        OutputStream file = new BufferedOutputStream(Files.newOutputStream(unfinished), 1 << 16);
        out = JSON.createGenerator(file);
        out.setRootValueSeparator(null);
    }

    /** The slice was read to its end: what was added becomes visible. */
    void finish() throws IOException {
        if (out != null) {
            out.close();
            out = null;
            Files.move(unfinished, target, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
        }
    }

    /** Forgets what was added, unless {@link #finish} came first. */
    @Override
    public void close() throws IOException {
        if (out != null) {
            out.close();
            out = null;
            Files.deleteIfExists(unfinished);
        }
    }
}
