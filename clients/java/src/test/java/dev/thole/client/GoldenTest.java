package dev.thole.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes". */
class GoldenTest {
    private static final Map<String, Class<?>> TYPES = Map.ofEntries(
        Map.entry("OpenSession", Wire.OpenSession.class), Map.entry("SessionOpened", Wire.Answer.class),
        Map.entry("NextTasks", Wire.NextTasks.class), Map.entry("Tasks", Wire.Answer.class), Map.entry("Task", Task.class),
        Map.entry("RenewTasks", Wire.RenewTasks.class), Map.entry("RunningTask", Wire.RunningTask.class),
        Map.entry("TasksRenewed", Wire.Answer.class), Map.entry("Notice", Wire.Notice.class),
        Map.entry("CompleteTasks", Wire.CompleteTasks.class), Map.entry("Outcome", Wire.Outcome.class),
        Map.entry("TaskFailure", Wire.Failure.class), Map.entry("TasksCompleted", Wire.Answer.class),
        Map.entry("OutcomeResult", Wire.Result.class), Map.entry("CloseSession", Wire.CloseSession.class),
        Map.entry("SessionClosed", Wire.Answer.class), Map.entry("StartInstance", Wire.Ask.class),
        Map.entry("InstanceStarted", Wire.Answer.class), Map.entry("SignalInstance", Wire.Ask.class),
        Map.entry("EndInstance", Wire.Ask.class), Map.entry("Accepted", Wire.Answer.class), Map.entry("QueryInstance", Wire.Ask.class),
        Map.entry("QueryResult", Wire.Answer.class), Map.entry("WaitInstance", Wire.Ask.class),
        Map.entry("InstanceOutcome", Wire.Answer.class));

    /** What this client does not look at, or does not send. */
    private static final Map<String, Set<String>> LEFT_OUT = Map.of("SessionOpened", Set.of("session", "gateway"),
        "OutcomeResult", Set.of("claim"),
        "TasksCompleted", Set.of("claim"), "StartInstance", Set.of("traceparent", "tracestate"));

    @Test
    void eachMessageIsReadAndWritten() throws IOException {
        JsonArray lines = JsonParser.parseString(Files.readString(Path.of("../../proto/golden/gateway.json"))).getAsJsonArray();
        Set<String> seen = new HashSet<>();
        for (JsonElement each : lines) {
            JsonObject line = each.getAsJsonObject();
            String name = line.get("name").getAsString();
            String type = line.get("type").getAsString().replace("thole.v1.", "");
            assertTrue(TYPES.containsKey(type), "a message that this test does not know: " + type);
            seen.add(type);
            Object message = Wire.GSON.fromJson(line.get("json").toString(), TYPES.get(type));
            JsonElement written = JsonParser.parseString(Wire.GSON.toJson(message));
            assertEquals(plain(line.get("json"), LEFT_OUT.getOrDefault(type, Set.of())), plain(written, Set.of()), name);
        }
        assertEquals(TYPES.keySet(), seen);
    }

    /** Without defaults; numbers as texts, since 64-bit ones may be either. */
    private static JsonElement plain(JsonElement from, Set<String> without) {
        if (from.isJsonArray()) {
            JsonArray to = new JsonArray();
            from.getAsJsonArray().forEach(item -> to.add(plain(item, without)));
            return to;
        }
        if (!from.isJsonObject()) return from.isJsonPrimitive() && from.getAsJsonPrimitive().isNumber() ? new JsonPrimitive(from.getAsString()) : from;
        JsonObject to = new JsonObject();
        from.getAsJsonObject().entrySet().forEach(member -> {
            JsonElement value = plain(member.getValue(), without);
            boolean empty = value.isJsonNull() || value.isJsonArray() && value.getAsJsonArray().isEmpty()
                || value.isJsonPrimitive() && Set.of("", "0", "false").contains(value.getAsString());
            if (!empty && !without.contains(member.getKey())) to.add(member.getKey(), value);
        });
        return to;
    }
}
