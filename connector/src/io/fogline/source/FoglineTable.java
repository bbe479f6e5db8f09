package io.fogline.source;

import java.util.EnumSet;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Files of records as a table that Spark can read at once or as a stream. */
final class FoglineTable implements SupportsRead {
    private final SourceOptions options;

    FoglineTable(SourceOptions options) {
        this.options = options;
    }

    @Override
    public String name() {
        return "fogline " + options.path();
    }

    @Override
    @SuppressWarnings("deprecation") // columns() falls back to it, and it is the simpler of the two.
    public StructType schema() {
        return options.panes() == null ? FieldsParser.schema(options.fields()) : PaneSpec.SCHEMA;
    }

    @Override
    public Set<TableCapability> capabilities() {
        return EnumSet.of(TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ);
    }

    @Override
    public ScanBuilder newScanBuilder(CaseInsensitiveStringMap ignored) {
        return new FoglineScanBuilder(options);
    }
}
