package io.fogline.stage;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * What the stage computes, read from its JSON form. A spec that exists is right: every index points
 * at something, every length is a positive multiple of the pane, names are known. Anything else is
 * an {@link IllegalArgumentException} that names the place.
 */
record StageSpec(long paneMs, boolean live, List<Channel> channels, List<NodeSpec> nodes, long fingerprint) {
    /** Where a partial lies in the rows of its channel. */
    record Partial(PartialKind kind, int at) {}

    /** Rows of one set of keys; {@code eventsAt} is -1 when they carry no events. */
    record Channel(List<Partial> partials, int eventsAt, int inputs, boolean labels) {}

    enum WindowKind { TIME, EVENTS, SESSION, RUNNING }

    /** {@code length} is in ms, or a number of records for {@code EVENTS}. */
    record Window(WindowKind kind, long length, long offset) {}

    /** One column of a node: a function with its partials, or with inputs of the events. */
    record Aggregate(int column, String function, int[] partials, int[] inputs, double[] parameters,
                     Window window, boolean labels) {}

    enum NodeKind { EVERY, ARRIVAL, SESSION }

    record NodeSpec(int id, int channel, NodeKind kind, long everyMs, int everyEvents, List<Aggregate> aggregates) {}

    static StageSpec parse(String json) {
        JsonNode root;
        try {
            root = new ObjectMapper().readTree(json);
        } catch (JsonProcessingException e) {
            throw new IllegalArgumentException("stage: the spec is not JSON: " + e.getOriginalMessage(), e);
        }
        StageSpec spec = new Parser().spec(root);
        for (int channel = 0; channel < spec.channels.size(); channel++) {
            new KeyState(spec, channel);
        }
        return spec;
    }

    List<NodeSpec> nodesOf(int channel) {
        return nodes.stream().filter(node -> node.channel() == channel).toList();
    }

    private static final class Parser {
        private long pane;

        StageSpec spec(JsonNode root) {
            pane = positive(root, "paneMs", "the spec");
            List<Channel> channels = new ArrayList<>();
            for (JsonNode channel : array(root, "channels", "the spec")) {
                channels.add(channel(channel, "channel " + channels.size()));
            }
            List<NodeSpec> nodes = new ArrayList<>();
            Set<Integer> ids = new HashSet<>();
            for (JsonNode node : array(root, "nodes", "the spec")) {
                NodeSpec made = node(node, channels);
                check(ids.add(made.id()), "two nodes have the id " + made.id());
                nodes.add(made);
            }
            boolean live = root.path("live").asBoolean(false);
            return new StageSpec(pane, live, List.copyOf(channels), List.copyOf(nodes), fingerprint(root));
        }

        private static long fingerprint(JsonNode root) {
            CRC32 sum = new CRC32();
            sum.update(root.toString().getBytes(StandardCharsets.UTF_8));
            return sum.getValue();
        }

        private Channel channel(JsonNode json, String where) {
            List<Partial> partials = new ArrayList<>();
            for (JsonNode partial : array(json, "partials", where)) {
                partials.add(new Partial(PartialKind.named(partial.path("kind").asText()), index(partial, "at", where)));
            }
            JsonNode events = json.path("events");
            boolean has = events.isObject();
            return new Channel(List.copyOf(partials), has ? index(events, "at", where) : -1,
                    has ? index(events, "inputs", where) : 0, json.path("labels").asBoolean(false));
        }

        private NodeSpec node(JsonNode json, List<Channel> channels) {
            int id = index(json, "id", "a node");
            String where = "node " + id;
            int channel = index(json, "channel", where);
            check(channel < channels.size(), where + ": there is no channel " + channel);
            NodeKind kind = named(NodeKind.class, json.path("kind").asText(), where + ": unknown kind");
            long every = kind == NodeKind.EVERY ? grid(json, "everyMs", where) : 0;
            int events = json.has("everyEvents") ? (int) positive(json, "everyEvents", where) : 1;
            List<Aggregate> aggregates = new ArrayList<>();
            for (JsonNode aggregate : array(json, "aggregates", where)) {
                aggregates.add(aggregate(aggregate, aggregates.size(), channels.get(channel), where));
            }
            check(!aggregates.isEmpty(), where + ": no aggregates");
            return new NodeSpec(id, channel, kind, every, events, List.copyOf(aggregates));
        }

        private Aggregate aggregate(JsonNode json, int column, Channel channel, String node) {
            String function = json.path("function").asText();
            String where = node + ", " + function;
            int[] partials = indices(json, "partials", channel.partials().size(), where);
            int[] inputs = indices(json, "inputs", channel.inputs(), where);
            check(partials.length > 0 || inputs.length > 0, where + ": neither partials nor inputs");
            boolean labels = json.path("labels").asBoolean(false);
            check(!labels || channel.labels(), where + ": labels asked for, but its channel has none");
            return new Aggregate(column, function, partials, inputs, numbers(json, where),
                    window(json, where), labels);
        }

        private Window window(JsonNode json, String where) {
            JsonNode window = json.path("window");
            WindowKind kind = named(WindowKind.class, window.path("kind").asText(), where + ": unknown window kind");
            long offset = json.path("offset").asLong(0);
            check(offset >= 0, where + ": the offset is negative");
            check(offset == 0 || kind == WindowKind.TIME, where + ": only time windows can have an offset");
            long length = kind == WindowKind.RUNNING ? 0 : positive(window, "length", where);
            return new Window(kind, length, offset);
        }

        private double[] numbers(JsonNode json, String where) {
            JsonNode list = json.path("parameters");
            double[] numbers = new double[list.size()];
            for (int i = 0; i < numbers.length; i++) {
                check(list.get(i).isNumber(), where + ": parameter " + i + " is not a number");
                numbers[i] = list.get(i).asDouble();
            }
            return numbers;
        }

        private int[] indices(JsonNode json, String name, int size, String where) {
            JsonNode list = json.path(name);
            int[] indices = new int[list.size()];
            for (int i = 0; i < indices.length; i++) {
                indices[i] = list.get(i).isInt() ? list.get(i).asInt() : -1;
                check(indices[i] >= 0 && indices[i] < size,
                        where + ": " + name + " has the index " + list.get(i) + ", but its channel has only " + size);
            }
            return indices;
        }

        private static <E extends Enum<E>> E named(Class<E> type, String name, String message) {
            for (E value : type.getEnumConstants()) {
                if (value.name().equals(name.toUpperCase(Locale.ROOT))) {
                    return value;
                }
            }
            throw new IllegalArgumentException("stage: " + message + " '" + name + "'");
        }

        private long grid(JsonNode json, String name, String where) {
            long value = positive(json, name, where);
            check(value % pane == 0, where + ": " + name + " " + value + " is not a multiple of the pane " + pane);
            return value;
        }

        private static long positive(JsonNode json, String name, String where) {
            JsonNode value = json.path(name);
            check(value.isIntegralNumber() && value.asLong() > 0, where + ": '" + name + "' must be a positive integer");
            return value.asLong();
        }

        private static int index(JsonNode json, String name, String where) {
            JsonNode value = json.path(name);
            check(value.isInt() && value.asInt() >= 0, where + ": '" + name + "' must be an integer, 0 or more");
            return value.asInt();
        }

        private static JsonNode array(JsonNode json, String name, String where) {
            check(json.path(name).isArray(), where + ": '" + name + "' must be a list");
            return json.path(name);
        }

        private static void check(boolean fine, String message) {
            if (!fine) {
                throw new IllegalArgumentException("stage: " + message);
            }
        }
    }
}
