package io.fogline.source;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.fogline.decode.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** What a read in panes makes of its records: channels of keys and inputs, and slots over the inputs. */
record PaneSpec(long paneMs, List<Channel> channels, List<Slot> slots, int numbers, int lists) {
    static final StructType SCHEMA = new StructType()
            .add("channel", DataTypes.IntegerType)
            .add("key", DataTypes.StringType)
            .add("pane", DataTypes.LongType)
            .add("nums", DataTypes.createArrayType(DataTypes.DoubleType))
            .add("lists", DataTypes.createArrayType(DataTypes.createArrayType(DataTypes.DoubleType)))
            .add("blobs", DataTypes.createArrayType(DataTypes.BinaryType))
            .add("pass", DataTypes.StringType)
            .add("_time", DataTypes.TimestampType);

    record Key(String name, int column, boolean number) {}

    /** An input that this stream does not have is null. */
    record Input(int column, boolean text, Filter when) {}

    record Channel(int number, List<Key> keys, List<Input> inputs) {}

    enum Kind {
        COUNT(1, true), SUM(1, false), LOGSUM(1, false), MIN(1, false), MAX(1, false), MOMENTS(3, true),
        COMOMENTS(6, true), TIMED(7, true), FIRST(2, false), LAST(2, false), VALUES(1, false), EVENTS(0, false);

        final int width;
        /** Whether its first number counts records, and so is 0 over none. */
        final boolean counts;

        Kind(int width, boolean counts) {
            this.width = width;
            this.counts = counts;
        }

        boolean isList() {
            return this == VALUES || this == EVENTS;
        }
    }

    /** {@code at} is the first place in the numbers or in the lists. */
    record Slot(Kind kind, int[] inputs, int at) {}

    static PaneSpec parse(String text, List<Field> fields) {
        JsonNode json;
        try {
            json = new ObjectMapper().readTree(text);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("option panes is not JSON", e);
        }
        List<String> names = fields.stream().map(Field::name).toList();
        List<Channel> channels = new ArrayList<>();
        for (JsonNode channel : json.get("channels")) {
            List<Key> keys = new ArrayList<>();
            for (JsonNode key : channel.get("keys")) {
                int column = names.indexOf(key.get("column").asText());
                keys.add(new Key(key.get("name").asText(), column, fields.get(column).type() == Field.Type.DOUBLE));
            }
            List<Input> inputs = new ArrayList<>();
            for (JsonNode input : channel.get("inputs")) {
                if (input.isNull()) {
                    inputs.add(null);
                    continue;
                }
                int column = names.indexOf(input.get("column").asText());
                Filter when = input.hasNonNull("when") ? new FilterParser(fields).parse(input.get("when")) : null;
                inputs.add(new Input(column, fields.get(column).type() == Field.Type.STRING, when));
            }
            channels.add(new Channel(channel.get("number").asInt(), keys, inputs));
        }
        List<Slot> slots = new ArrayList<>();
        int numbers = 0;
        int lists = 0;
        for (JsonNode slot : json.get("slots")) {
            Kind kind = Kind.valueOf(slot.get("kind").asText().toUpperCase(java.util.Locale.ROOT));
            int[] inputs = new int[slot.get("inputs").size()];
            for (int i = 0; i < inputs.length; i++) {
                inputs[i] = slot.get("inputs").get(i).asInt();
            }
            slots.add(new Slot(kind, inputs, kind.isList() ? lists : numbers));
            if (kind.isList()) {
                lists += kind == Kind.EVENTS ? 1 + inputs.length : 1;
            } else {
                numbers += kind.width;
            }
        }
        return new PaneSpec(json.get("paneMs").asLong(), channels, slots, numbers, lists);
    }
}
