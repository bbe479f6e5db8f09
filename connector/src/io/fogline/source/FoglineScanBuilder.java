package io.fogline.source;

import io.fogline.decode.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.types.StructType;

/** Narrows a batch read to the columns Spark needs; streaming reads come with all of them. */
final class FoglineScanBuilder implements SupportsPushDownRequiredColumns {
    private final SourceOptions options;
    private StructType required;

    FoglineScanBuilder(SourceOptions options) {
        this.options = options;
        this.required = FieldsParser.schema(options.fields());
    }

    @Override
    public void pruneColumns(StructType needed) {
        required = needed;
    }

    @Override
    public Scan build() {
        if (options.panes() != null) {
            return new FoglineScan(options, PaneSpec.SCHEMA, new int[0]);
        }
        List<String> names = new ArrayList<>();
        for (Field field : options.fields()) {
            names.add(field.name());
        }
        int[] output = new int[required.length()];
        for (int i = 0; i < output.length; i++) {
            output[i] = names.indexOf(required.apply(i).name());
        }
        return new FoglineScan(options, required, output);
    }
}
