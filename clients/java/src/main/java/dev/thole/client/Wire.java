package dev.thole.client;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonInclude.Include;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.databind.DeserializationContext;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonDeserializer;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.function.Function;

/** The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them. */
final class Wire {
    /** Leaves out what is empty or 0, and reads what is not there as that. */
    static final ObjectMapper JSON = JsonMapper.builder()
        .defaultPropertyInclusion(JsonInclude.Value.construct(Include.NON_DEFAULT, Include.ALWAYS))
        .defaultSetterInfo(JsonSetter.Value.construct(Nulls.AS_EMPTY, Nulls.SKIP))
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .addModule(new SimpleModule().addDeserializer(int.class, new Unsigned<>(0, Integer::parseUnsignedInt))
            .addDeserializer(long.class, new Unsigned<>(0L, Long::parseUnsignedLong)))
        .build();

    private Wire() {}

    static byte[] bytes(Object message) {
        try {
            return JSON.writeValueAsBytes(message);
        } catch (IOException err) {
            throw new UncheckedIOException(err);
        }
    }

    record OpenSession(String worker, int slots, List<String> activities, String inbox, String host, String resume, List<String> claims) {}

    record NextTasks(int max, long waitMs) {}

    record RunningTask(String claim, byte[] details, boolean heartbeat) {}

    record RenewTasks(List<RunningTask> running) {}

    record Failure(String text, String type, @JsonProperty("final") boolean last) {}

    record Outcome(String claim, byte[] output, Failure failure, boolean cancelled, byte[] details, boolean heartbeat) {}

    record CompleteTasks(List<Outcome> outcomes) {}

    record CloseSession(long limitMs) {}

    /** A client's request, whatever it is. */
    record Ask(String instance, byte[] input, byte[] data, String reason, String requestId, int version, long waitMs) {
        Ask waiting(long ms) {
            return new Ask(instance, input, data, reason, requestId, version, ms);
        }
    }

    record Task(String claim, String activity, String queue, String orchestration, int version, String instance, long execution,
        long activityId, int tryNumber, int attempt, byte[] input, String key, byte[] details, long timeoutMs, String traceparent,
        String tracestate) {}

    record Notice(String claim, String kind, String reason, long graceMs) {}

    record Result(int status, String text) {}

    /** Any answer: what it does not have is empty. Of SessionOpened, Tasks, TasksRenewed, TasksCompleted, and to a client. */
    record Answer(int status, String text, String session, String subject, long leaseMs, long renewMs, long graceMs, long payloadMax,
        long detailsMax, List<Task> tasks, List<Notice> cancelled, List<String> gone, List<Result> results, String instance, String state, byte[] output, String errorType) {

        static Answer none(int status, String text) {
            return new Answer(status, text, "", "", 0, 0, 0, 0, 0, List.of(), List.of(), List.of(), List.of(), "", "", new byte[0], "");
        }
    }

    /** Numbers are unsigned, and 64-bit ones come as texts. */
    private static final class Unsigned<T> extends JsonDeserializer<T> {
        private final T absent;
        private final Function<String, T> parsed;

        Unsigned(T absent, Function<String, T> parsed) {
            this.absent = absent;
            this.parsed = parsed;
        }

        @Override
        public T getNullValue(DeserializationContext context) {
            return absent;
        }

        @Override
        public T deserialize(JsonParser in, DeserializationContext context) throws IOException {
            try {
                return parsed.apply(in.getText());
            } catch (NumberFormatException err) {
                throw context.weirdStringException(in.getText(), Number.class, "no number");
            }
        }
    }
}
