package io.fogline.decode;

import java.util.List;

/** The formats and how a decoder of each is made. */
public final class Decoders {
    /** Names a user may give as {@code format}. */
    public static final List<String> FORMATS = List.of("senml", "json", "ndjson", "csv", "xml", "cbor", "raw");

    private Decoders() {}

    /**
     * A new decoder.
     *
     * @param header csv: the names of the columns; otherwise unused
     * @param entity senml: the field under which the base name is known, or null
     */
    public static Decoder create(String format, Layout layout, List<String> header, String entity) {
        switch (format) {
            case "json":
                return JsonDecoder.json(layout);
            case "ndjson":
                return JsonDecoder.ndjson(layout);
            case "senml":
                return new SenmlDecoder(layout, entity);
            case "csv":
                return new CsvDecoder(layout, header);
            case "xml":
                return new XmlDecoder(layout);
            case "cbor":
                return new CborDecoder(layout);
            case "raw":
                return new RawDecoder();
            default:
                throw new IllegalArgumentException("unknown format " + format + "; known are " + FORMATS);
        }
    }
}
