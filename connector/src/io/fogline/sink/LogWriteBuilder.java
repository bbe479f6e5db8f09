package io.fogline.sink;

import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.apache.spark.sql.internal.connector.SupportsStreamingUpdateAsAppend;

/** A new value of a result is a new record: update mode is written as append mode is. */
record LogWriteBuilder(LogWrite write) implements WriteBuilder, SupportsStreamingUpdateAsAppend {
    @Override
    public Write build() {
        return new Write() {
            @Override
            public StreamingWrite toStreaming() {
                return write;
            }

            @Override
            public String description() {
                return "fogline-log " + write.root();
            }
        };
    }
}
