package dev.thole.client;

import dev.thole.client.Wire.RunningTask;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** One try of an activity. */
public final class Task {
    private final Wire.Task message;
    final Handle handle = new Handle();

    Task(Wire.Task message) {
        this.message = message;
    }

    String claim() { return message.claim(); }
    public String activity() { return message.activity(); }
    public String queue() { return message.queue(); }
    public String orchestration() { return message.orchestration(); }
    public int version() { return message.version(); }
    public String instance() { return message.instance(); }
    public long execution() { return message.execution(); }
    public long activityId() { return message.activityId(); }
    public int tryNumber() { return message.tryNumber(); }

    /** How often this try has been claimed. */
    public int attempt() { return message.attempt(); }
    public byte[] input() { return message.input(); }

    /** The same for every try and every run of this activity: pass it on to services that must not do it twice. */
    public String key() { return message.key(); }

    /** Of the last heartbeat before this claim. */
    public byte[] details() { return message.details(); }

    /** W3C Trace Context of the start; empty: it had none. */
    public String traceparent() { return message.traceparent(); }
    public String tracestate() { return message.tracestate(); }

    /** The input as UTF-8. */
    public String inputText() {
        return new String(input(), StandardCharsets.UTF_8);
    }

    /** Until this try's deadline, when it came; empty: it has none. */
    public Optional<Duration> timeout() {
        long timeoutMs = message.timeoutMs();
        return timeoutMs == 0 ? Optional.empty() : Optional.of(Duration.ofMillis(timeoutMs < 0 ? Long.MAX_VALUE : timeoutMs));
    }

    /**
     * Says that it goes on, and stores {@code details} with the next renewal. The newest one counts.
     *
     * @throws IllegalArgumentException the details are larger than the gateway takes.
     */
    public void heartbeat(byte[] details) {
        handle.heartbeat(details.clone());
    }

    public void heartbeat(String details) {
        heartbeat(details.getBytes(StandardCharsets.UTF_8));
    }

    public boolean isCancelled() {
        return cancellation().isPresent();
    }

    /** Why it is to end; empty: it is not. */
    public Optional<Cancellation> cancellation() {
        return Optional.ofNullable(handle.cancelled.getNow(null));
    }

    /** Is done when the task is to end, by another thread, besides the interrupt. */
    public CompletionStage<Cancellation> whenCancelled() {
        return handle.cancelled.thenApplyAsync(why -> why);
    }

    /** @throws CancellationException the task is to end. */
    public void throwIfCancelled() {
        cancellation().ifPresent(cause -> {
            throw new CancellationException(cause.kind());
        });
    }

    /** What its handler and the worker tell each other. */
    static final class Handle {
        private final CompletableFuture<Cancellation> cancelled = new CompletableFuture<>();
        private Thread thread; // of the handler, while it runs
        private byte[] beat; // the newest heartbeat, if it was not answered yet
        volatile long payloadMax;
        volatile long detailsMax;
        boolean sent; // the outcome may be stored, although no answer came; of the task's thread

        private synchronized void heartbeat(byte[] details) {
            if (details.length > detailsMax)
                throw new IllegalArgumentException("details of " + details.length + " bytes; the limit is " + detailsMax);
            beat = details;
        }

        /** The thread is interrupted when the task is cancelled, until {@link #ended}. */
        synchronized void runsOn(Thread handler) {
            thread = handler;
            if (cancelled.isDone()) handler.interrupt();
        }

        synchronized void ended() {
            thread = null;
            Thread.interrupted(); // it was for the handler
        }

        /** The first one counts. */
        synchronized void cancel(String kind, String reason, long graceMs) {
            if (cancelled.complete(new Cancellation(kind, reason, Duration.ofMillis(graceMs))) && thread != null) thread.interrupt();
        }

        /** For a renewal, with the heartbeat if there is one of at most so many bytes. */
        synchronized RunningTask running(String claim, long room) {
            boolean goes = beat != null && beat.length <= room;
            return new RunningTask(claim, goes ? beat : null, goes);
        }

        /** A heartbeat of {@link #running} has arrived. */
        synchronized void arrived(byte[] sent) {
            if (beat == sent) beat = null;
        }
    }
}
