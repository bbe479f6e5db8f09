package io.fogline.sink;

import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code writeStream.format("fogline-log")}: rows of (log, topic, payload) into the logs below option
 * {@code path}. In micro-batches exactly once: a batch that is run again changes nothing. With
 * {@code live} every row is written as it comes, at least once. Rows for logs that are named in the
 * file of option {@code muted} are dropped.
 */
public final class LogSink implements TableProvider, DataSourceRegister {
    static final StructType SCHEMA = new StructType()
            .add("log", DataTypes.StringType)
            .add("topic", DataTypes.StringType)
            .add("payload", DataTypes.BinaryType);

    @Override
    public String shortName() {
        return "fogline-log";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new LogTable();
    }

    /** The logs as a table that can only be written. */
    private static final class LogTable implements SupportsWrite {
        @Override
        public String name() {
            return "fogline-log";
        }

        @Override
        @SuppressWarnings("deprecation") // columns() falls back to it, and it is the simpler of the two.
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.STREAMING_WRITE);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            if (!names(info.schema()).equals(names(SCHEMA))) {
                throw new IllegalArgumentException("a log takes the columns log, topic, payload, not " + names(info.schema()));
            }
            String path = info.options().get("path");
            if (path == null) {
                throw new IllegalArgumentException("option path is missing: the folder of the site's logs");
            }
            boolean live = info.options().getBoolean("live", false);
            return new LogWriteBuilder(new LogWrite(Path.of(path).toString(), info.queryId(), live, info.options().get("muted")));
        }

        private static java.util.List<String> names(StructType schema) {
            return java.util.List.of(schema.fieldNames());
        }
    }
}
