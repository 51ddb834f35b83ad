package dev.thole.client;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonInclude.Include;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonSetter;
import com.fasterxml.jackson.annotation.Nulls;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.util.Collection;
import java.util.List;

/**
 * The messages of proto/gateway.proto in the JSON mapping, as far as a worker and a client read and write them. Numbers are unsigned:
 * those of 32 bits are a long, those of 64, which come as texts, a BigInteger.
 */
final class Wire {
    /** Leaves out what is empty or 0, and reads what is not there as that. */
    static final ObjectMapper JSON = JsonMapper.builder()
        .defaultPropertyInclusion(JsonInclude.Value.construct(Include.NON_DEFAULT, Include.ALWAYS))
        .defaultSetterInfo(JsonSetter.Value.construct(Nulls.AS_EMPTY, Nulls.SKIP))
        .withConfigOverride(Instance.class, info -> info.setSetterInfo(JsonSetter.Value.forValueNulls(Nulls.SET)))
        .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
        .build();

    private Wire() {}

    static byte[] bytes(Object message) {
        try {
            return JSON.writeValueAsBytes(message);
        } catch (IOException err) {
            throw new UncheckedIOException(err);
        }
    }

    record OpenSession(String worker, long slots, Collection<String> activities, String inbox, String host, String resume,
        Collection<String> claims) {}

    record NextTasks(long max, long waitMs) {}

    record RenewTasks(List<Outcome> running) {}

    record Failure(String text, String type, @JsonProperty("final") boolean last) {}

    /** Also a RunningTask: it has no more than a heartbeat then. */
    record Outcome(String claim, byte[] output, Failure failure, boolean cancelled, byte[] details, boolean heartbeat, boolean later) {
        Outcome(String claim, byte[] output, Failure failure, boolean cancelled, byte[] details, boolean heartbeat) {
            this(claim, output, failure, cancelled, details, heartbeat, false);
        }
    }

    record CompleteTasks(List<Outcome> outcomes) {}

    record CloseSession(long limitMs) {}

    /** A client's request, whatever it is. */
    record Ask(String instance, byte[] input, byte[] data, String reason, String requestId, long version, long waitMs, boolean explain,
        boolean requireKnown, byte[] eventData) {
        Ask(String instance, byte[] input, byte[] data, String reason, String requestId, long version, long waitMs) {
            this(instance, input, data, reason, requestId, version, waitMs, false, false, null);
        }

        Ask waiting(long ms, boolean last) {
            return new Ask(instance, input, data, reason, requestId, version, ms, last, requireKnown, eventData);
        }
    }

    record CompleteActivity(String token, byte[] output, Failure failure) {}

    record Task(String claim, String activity, String queue, String orchestration, long version, String instance, BigInteger execution,
        BigInteger activityId, long tryNumber, long attempt, byte[] input, String key, byte[] details, BigInteger timeoutMs,
        String traceparent, String tracestate, String token) {}

    /** Anything that a gateway sends, but for a task: what it does not have is empty. Also a Notice, and an OutcomeResult. */
    record Answer(long status, String text, String session, String subject, long leaseMs, long renewMs, long graceMs, BigInteger payloadMax,
        long detailsMax, List<Task> tasks, List<Answer> cancelled, List<String> gone, List<Answer> results, String claim, String kind,
        String reason, String instance, String state, byte[] output, String errorType, String nextStep, String note, Instance info,
        List<Instance.Hindrance> hindrances, List<Instance> instances) {

        static Answer none(int status, String text) {
            return new Answer(status, text, "", "", 0, 0, 0, BigInteger.ZERO, 0, List.of(), List.of(), List.of(), List.of(), "", "", "", "",
                "", new byte[0], "", "", "", null, List.of(), List.of());
        }
    }
}
