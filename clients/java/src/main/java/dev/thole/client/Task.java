package dev.thole.client;

import dev.thole.client.Wire.TaskMessage;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;

/** One try of an activity. */
public final class Task {
    private final TaskMessage message;
    private final Held held;

    Task(TaskMessage message, Held held) {
        this.message = message;
        this.held = held;
    }

    public String activity() {
        return message.activity;
    }

    public String queue() {
        return message.queue;
    }

    /** W3C Trace Context of the start; empty: it had none. */
    public String traceparent() {
        return message.traceparent;
    }

    public String tracestate() {
        return message.tracestate;
    }

    public String orchestration() {
        return message.orchestration;
    }

    public int version() {
        return message.version;
    }

    public String instance() {
        return message.instance;
    }

    public long execution() {
        return message.execution;
    }

    public long activityId() {
        return message.activityId;
    }

    public int tryNumber() {
        return message.tryNumber;
    }

    /** How often this try has been claimed. */
    public int attempt() {
        return message.attempt;
    }

    public byte[] input() {
        return message.input;
    }

    /** The input as UTF-8. */
    public String inputText() {
        return new String(message.input, StandardCharsets.UTF_8);
    }

    /** The same for every try and every run of this activity: pass it on to services that must not do it twice. */
    public String key() {
        return message.key;
    }

    /** Of the last heartbeat before this claim. */
    public byte[] details() {
        return message.details;
    }

    /** Until this try's deadline, when it came; empty: it has none. */
    public Optional<Duration> timeout() {
        return message.timeoutMs == 0 ? Optional.empty() : Optional.of(Duration.ofMillis(message.timeoutMs < 0 ? Long.MAX_VALUE : message.timeoutMs));
    }

    /**
     * Says that it goes on, and stores {@code details} with the next renewal. The newest one counts.
     *
     * @throws IllegalArgumentException the details are larger than a payload may be.
     */
    public void heartbeat(byte[] details) {
        held.heartbeat(details);
    }

    public void heartbeat(String details) {
        heartbeat(details.getBytes(StandardCharsets.UTF_8));
    }

    public boolean isCancelled() {
        return held.why() != null;
    }

    /** Why it is to end; empty: it is not. */
    public Optional<Cancellation> cancellation() {
        return Optional.ofNullable(held.why());
    }

    /** Is done when the task is to end, by a thread of the worker's, besides the interrupt. */
    public CompletionStage<Cancellation> whenCancelled() {
        return held.whenCancelled();
    }

    /** @throws CancellationException the task is to end. */
    public void throwIfCancelled() {
        Cancellation why = held.why();
        if (why != null) throw new CancellationException(why.kind());
    }
}
