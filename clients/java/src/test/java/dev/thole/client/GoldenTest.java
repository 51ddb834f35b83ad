package dev.thole.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes". */
class GoldenTest {
    private static final ObjectMapper JSON = Wire.JSON.copy();

    static {
        JSON.configOverride(Wire.Failure.class).setSetterInfo(JsonSetter.Value.forValueNulls(Nulls.SET)); // never read but here
    }

    private static final Map<String, Class<?>> TYPES = Map.ofEntries(
        Map.entry("OpenSession", Wire.OpenSession.class), Map.entry("SessionOpened", Wire.Answer.class),
        Map.entry("NextTasks", Wire.NextTasks.class), Map.entry("Tasks", Wire.Answer.class), Map.entry("Task", Wire.Task.class),
        Map.entry("RenewTasks", Wire.RenewTasks.class), Map.entry("RunningTask", Wire.Outcome.class),
        Map.entry("TasksRenewed", Wire.Answer.class), Map.entry("Notice", Wire.Answer.class),
        Map.entry("CompleteTasks", Wire.CompleteTasks.class), Map.entry("Outcome", Wire.Outcome.class),
        Map.entry("TaskFailure", Wire.Failure.class), Map.entry("TasksCompleted", Wire.Answer.class),
        Map.entry("OutcomeResult", Wire.Answer.class), Map.entry("CloseSession", Wire.CloseSession.class),
        Map.entry("SessionClosed", Wire.Answer.class), Map.entry("StartInstance", Wire.Ask.class),
        Map.entry("InstanceStarted", Wire.Answer.class), Map.entry("SignalInstance", Wire.Ask.class),
        Map.entry("EndInstance", Wire.Ask.class), Map.entry("Accepted", Wire.Answer.class), Map.entry("QueryInstance", Wire.Ask.class),
        Map.entry("QueryResult", Wire.Answer.class), Map.entry("WaitInstance", Wire.Ask.class),
        Map.entry("InstanceOutcome", Wire.Answer.class), Map.entry("DescribeInstance", Wire.Ask.class),
        Map.entry("InstanceDescription", Wire.Answer.class), Map.entry("InstanceInfo", Instance.class),
        Map.entry("Hindrance", Instance.Hindrance.class), Map.entry("ListInstances", Instance.Filter.class),
        Map.entry("InstanceList", Wire.Answer.class), Map.entry("CompleteActivity", Wire.CompleteActivity.class));

    /** What this client does not look at, or does not send. */
    private static final Map<String, Set<String>> LEFT_OUT = Map.of("SessionOpened", Set.of("gateway"),
        "StartInstance", Set.of("traceparent", "tracestate"));

    /** These have numbers as Java has them: none of thole's is beyond (docs/wire.md, "Numbers"). */
    private static final Set<String> SIGNED = Set.of("InstanceInfo", "InstanceDescription", "InstanceList", "ListInstances");

    @Test
    void eachMessageIsReadAndWritten() throws IOException {
        Set<String> seen = new HashSet<>();
        for (JsonNode line : JSON.readTree(Files.readString(Path.of("../../proto/golden/gateway.json")))) {
            String type = line.get("type").asText().replace("thole.v1.", "");
            assertTrue(TYPES.containsKey(type), "a message that this test does not know: " + type);
            seen.add(type);
            if (SIGNED.contains(type) && line.get("name").asText().endsWith(", most")) continue;
            Object message = JSON.readValue(line.get("json").toString(), TYPES.get(type));
            JsonNode written = JSON.readTree(JSON.writeValueAsString(message));
            assertEquals(plain(line.get("json"), LEFT_OUT.getOrDefault(type, Set.of())), plain(written, Set.of()), line.get("name").asText());
        }
        assertEquals(TYPES.keySet(), seen);
    }

    /** Without defaults; numbers as texts, since 64-bit ones may be either. */
    private static JsonNode plain(JsonNode from, Set<String> without) {
        if (from.isArray()) {
            ArrayNode to = JSON.createArrayNode();
            from.forEach(item -> to.add(plain(item, without)));
            return to;
        }
        if (from.isNumber()) return TextNode.valueOf(from.asText());
        if (!from.isObject()) return from;
        ObjectNode to = JSON.createObjectNode();
        from.properties().forEach(member -> {
            JsonNode value = plain(member.getValue(), without);
            boolean empty = value.isNull() || value.isArray() && value.isEmpty() || Set.of("", "0", "false").contains(value.asText()) && value.isValueNode();
            if (!empty && !without.contains(member.getKey())) to.set(member.getKey(), value);
        });
        return to;
    }
}
