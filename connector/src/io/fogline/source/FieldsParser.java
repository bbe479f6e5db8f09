package io.fogline.source;

import com.fasterxml.jackson.databind.JsonNode;
import io.fogline.decode.Field;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** The columns of a read: from option {@code fields} to {@link Field}s, and from those to a schema. */
final class FieldsParser {
    static final String TIME = "_time";

    private static final Map<String, Field.Type> TYPES = Map.of(
            "double", Field.Type.DOUBLE,
            "long", Field.Type.LONG,
            "string", Field.Type.STRING,
            "boolean", Field.Type.BOOLEAN);
    private static final Map<String, Field.Type> RESERVED = Map.of(
            "_error", Field.Type.ERROR,
            "_raw", Field.Type.RAW,
            "_payload", Field.Type.PAYLOAD,
            "_topic", Field.Type.TOPIC,
            "_hash", Field.Type.HASH,
            "_fraction", Field.Type.FRACTION,
            "_clock", Field.Type.CLOCK);

    private FieldsParser() {}

    /** The listed columns and, behind them, the event time. */
    static List<Field> parse(JsonNode list) {
        if (!list.isArray()) {
            throw new IllegalArgumentException("option fields: expected a JSON list");
        }
        List<Field> fields = new ArrayList<>();
        Set<String> names = new HashSet<>();
        for (JsonNode item : list) {
            Field field = field(item);
            if (!names.add(field.name()) || field.name().equals(TIME)) {
                throw new IllegalArgumentException("option fields: column " + field.name() + " is there twice");
            }
            fields.add(field);
        }
        fields.add(new Field(TIME, Field.Type.TIME, TIME, false));
        return fields;
    }

    private static Field field(JsonNode item) {
        if (!item.path("name").isTextual()) {
            throw new IllegalArgumentException("option fields: a column has no name: " + item);
        }
        String name = item.get("name").textValue();
        Field.Type reserved = RESERVED.get(name);
        if (reserved != null) {
            return new Field(name, reserved, name, false);
        }
        Field.Type type = TYPES.get(item.path("type").asText());
        if (type == null) {
            throw new IllegalArgumentException(
                    "option fields: type of column " + name + " is none of double, long, string, boolean");
        }
        return new Field(name, type, item.path("from").asText(name), item.path("metric").asBoolean(false));
    }

    static StructType schema(List<Field> fields) {
        StructType schema = new StructType();
        for (Field field : fields) {
            schema = schema.add(field.name(), sparkType(field.type()), true);
        }
        return schema;
    }

    private static DataType sparkType(Field.Type type) {
        switch (type) {
            case DOUBLE, FRACTION:
                return DataTypes.DoubleType;
            case LONG, HASH:
                return DataTypes.LongType;
            case BOOLEAN, CLOCK:
                return DataTypes.BooleanType;
            case TIME:
                return DataTypes.TimestampType;
            case PAYLOAD:
                return DataTypes.BinaryType;
            default:
                return DataTypes.StringType;
        }
    }
}
