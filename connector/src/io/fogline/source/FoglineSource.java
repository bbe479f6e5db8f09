package io.fogline.source;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code spark.read|readStream.format("fogline")}: the columns follow from option {@code fields}. */
public final class FoglineSource implements TableProvider, DataSourceRegister {
    @Override
    public String shortName() {
        return "fogline";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        return FieldsParser.schema(SourceOptions.of(options).fields());
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> properties) {
        return new FoglineTable(SourceOptions.of(new CaseInsensitiveStringMap(properties)));
    }
}
