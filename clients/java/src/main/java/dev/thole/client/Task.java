package dev.thole.client;

import dev.thole.client.Wire.Outcome;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** One try of an activity. */
public final class Task {
    /** Returned by an activity whose task is completed later, by who has its {@link #token}. This very array counts. */
    public static final byte[] LATER = "completed later".getBytes(StandardCharsets.UTF_8);

    private final Wire.Task message;
    private final Worker worker; // its lock is that of what follows
    private final CompletableFuture<Cancellation> cancelled = new CompletableFuture<>();
    private Thread thread; // of the handler, while it runs
    Outcome beat; // the newest heartbeat, unless an answered renewal had it

    Task(Wire.Task message, Worker worker) {
        this.message = message;
        this.worker = worker;
    }

    String claim() { return message.claim(); }
    public String activity() { return message.activity(); }
    public String queue() { return message.queue(); }
    public String orchestration() { return message.orchestration(); }
    public int version() { return (int) message.version(); }
    public String instance() { return message.instance(); }
    public long execution() { return message.execution().longValue(); }
    public long activityId() { return message.activityId().longValue(); }
    public int tryNumber() { return (int) message.tryNumber(); }

    /** How often this try has been claimed. */
    public int attempt() { return (int) message.attempt(); }
    public byte[] input() { return message.input(); }

    /** The same for every try and every run of this activity: pass it on to services that must not do it twice. */
    public String key() { return message.key(); }

    /** Of the last heartbeat before this claim. */
    public byte[] details() { return message.details(); }

    /** W3C Trace Context of the start; empty: it had none. */
    public String traceparent() { return message.traceparent(); }
    public String tracestate() { return message.tracestate(); }

    /** For {@link Client#completeActivity}, when the activity has returned {@link #LATER}; empty: it must not be completed later. */
    public String token() { return message.token(); }

    /** The input as UTF-8. */
    public String inputText() {
        return new String(input(), StandardCharsets.UTF_8);
    }

    /** Until this try's deadline, when it came; empty: it has none. */
    public Optional<Duration> timeout() {
        long timeoutMs = message.timeoutMs().min(BigInteger.valueOf(Long.MAX_VALUE)).longValue();
        return timeoutMs == 0 ? Optional.empty() : Optional.of(Duration.ofMillis(timeoutMs));
    }

    /**
     * Says that it goes on, and stores {@code details} with the next renewal. The newest one counts.
     *
     * @throws IllegalArgumentException the details are larger than the gateway takes.
     */
    public void heartbeat(byte[] details) {
        synchronized (worker) {
            if (details.length > worker.detailsMax)
                throw new IllegalArgumentException("details of " + details.length + " bytes; the limit is " + worker.detailsMax);
            beat = new Outcome(claim(), null, null, false, details.clone(), true);
        }
    }

    public void heartbeat(String details) {
        heartbeat(details.getBytes(StandardCharsets.UTF_8));
    }

    public boolean isCancelled() {
        return cancellation().isPresent();
    }

    /** Why it is to end; empty: it is not. */
    public Optional<Cancellation> cancellation() {
        return Optional.ofNullable(cancelled.getNow(null));
    }

    /** Is done when the task is to end, by another thread, besides the interrupt. */
    public CompletionStage<Cancellation> whenCancelled() {
        return cancelled.thenApplyAsync(why -> why);
    }

    /** @throws CancellationException the task is to end. */
    public void throwIfCancelled() {
        cancellation().ifPresent(cause -> {
            throw new CancellationException(cause.kind());
        });
    }

    /** The handler's thread is interrupted when the task is cancelled. Null: not any more. */
    void runsOn(Thread handler) {
        synchronized (worker) {
            thread = handler;
            if (handler != null && isCancelled()) handler.interrupt();
        }
    }

    /** The first one counts. Lock held. */
    void cancel(String kind, String reason, long graceMs) {
        if (cancelled.complete(new Cancellation(kind, reason, Duration.ofMillis(graceMs))) && thread != null) thread.interrupt();
    }
}
