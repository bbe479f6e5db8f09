package io.fogline.source;

import io.fogline.decode.BadMessage;
import io.fogline.decode.CsvDecoder;
import io.fogline.decode.Decoder;
import io.fogline.decode.Decoders;
import java.io.Closeable;
import java.io.IOException;
import java.util.List;

/** The messages of one slice together with the decoder they need: csv may have a header per file. */
final class SliceMessages implements Closeable {
    private static final long NO_HEADER = -1;

    private final Messages messages;
    private Decoder decoder;
    private long headerPosition = NO_HEADER;

    SliceMessages(Slice slice, SourceOptions options) throws IOException {
        if (options.format().equals("csv") && options.header() == null) {
            readHeader(slice, options);
        } else {
            decoder = Decoders.create(options.format(), options.layout(), options.header(), options.entity());
        }
        messages = open(slice, options);
    }

    private static Messages open(Slice slice, SourceOptions options) throws IOException {
        if (options.log()) {
            return new LogMessages(slice);
        }
        return options.format().equals("cbor") ? new CborMessages(slice) : new LineMessages(slice);
    }

    /** The first line of the file, whichever slice of it this is. */
    private void readHeader(Slice slice, SourceOptions options) throws IOException {
        try (Messages lines = new LineMessages(new Slice(slice.file(), slice.path(), 0, slice.end()))) {
            if (lines.next()) {
                headerPosition = lines.position();
                List<String> header = CsvDecoder.header(lines.bytes(), lines.from(), lines.to());
                decoder = Decoders.create("csv", options.layout(), header, null);
            }
        } catch (BadMessage e) {
            decoder = (bytes, from, to, out) -> {
                throw new BadMessage("the file's header is bad: " + e.getMessage());
            };
        }
    }

    boolean next() throws IOException {
        if (!messages.next()) {
            return false;
        }
        return messages.position() != headerPosition || messages.next();
    }

    Messages current() {
        return messages;
    }

    Decoder decoder() {
        return decoder;
    }

    @Override
    public void close() throws IOException {
        messages.close();
    }
}
