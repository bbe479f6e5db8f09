package io.fogline.results;

import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * {@code write.format("fogline-results")}, batch or stream: the records of each batch as lines to the
 * {@link ResultOutput} of option {@code output}, in the order of end, insight, key and record. Memory
 * does not grow with their number: tasks sort with Spark's own sorter and write runs below option
 * {@code folder}, and the driver merges the runs.
 */
public final class ResultSink implements TableProvider, DataSourceRegister {
    static final StructType SCHEMA = new StructType()
            .add("end", DataTypes.LongType)
            .add("insight", DataTypes.StringType)
            .add("key", DataTypes.StringType)
            .add("record", DataTypes.StringType);

    @Override
    public String shortName() {
        return "fogline-results";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return SCHEMA;
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new ResultTable();
    }

    /** Results as a table that can only be written. */
    private static final class ResultTable implements SupportsWrite {
        @Override
        public String name() {
            return "fogline-results";
        }

        @Override
        @SuppressWarnings("deprecation") // columns() falls back to it, and it is the simpler of the two.
        public StructType schema() {
            return SCHEMA;
        }

        @Override
        public Set<TableCapability> capabilities() {
            return EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.STREAMING_WRITE);
        }

        @Override
        public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
            List<String> names = List.of(info.schema().fieldNames());
            if (!names.equals(List.of(SCHEMA.fieldNames()))) {
                throw new IllegalArgumentException("results have the columns end, insight, key, record, not " + names);
            }
            ResultWrite write = new ResultWrite(option(info, "output"), option(info, "folder"));
            return new WriteBuilder() {
                @Override
                public Write build() {
                    return write;
                }
            };
        }

        private static String option(LogicalWriteInfo info, String name) {
            String value = info.options().get(name);
            if (value == null) {
                throw new IllegalArgumentException("option " + name + " is missing");
            }
            return value;
        }
    }
}
