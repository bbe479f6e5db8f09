package io.fogline.encode;

import com.fasterxml.jackson.core.io.JsonStringEncoder;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Texts as JSON strings, as Spark's {@code to_json} writes them, without its way through Java's own strings. */
public final class JsonQuote {
    private static final UTF8String NULL = UTF8String.fromString("null");

    private JsonQuote() {}

    /** A column of texts as JSON, quotes included; a missing one is {@code null}. */
    public static Column column(Column text) {
        return Calls.of(JsonQuote.class, "quote", DataTypes.StringType, false, text);
    }

    /** Called by the code that Spark generates. */
    public static UTF8String quote(UTF8String text) {
        if (text == null) {
            return NULL;
        }
        int length = text.numBytes();
        byte[] quoted = new byte[length + 2];
        Platform.copyMemory(text.getBaseObject(), text.getBaseOffset(), quoted, Platform.BYTE_ARRAY_OFFSET + 1, length);
        for (int i = 1; i <= length; i++) {
            byte c = quoted[i];
            if (c == '"' || c == '\\' || c >= 0 && c < ' ') {
                return escaped(text);
            }
        }
        quoted[0] = '"';
        quoted[length + 1] = '"';
        return UTF8String.fromBytes(quoted);
    }

    private static UTF8String escaped(UTF8String text) {
        String escaped = new String(JsonStringEncoder.getInstance().quoteAsString(text.toString()));
        return UTF8String.fromString('"' + escaped + '"');
    }
}
