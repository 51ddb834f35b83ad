package dev.thole.client;

import dev.thole.client.Wire.RunningTask;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** One try of an activity. */
public final class Task {
    // As it comes: proto/gateway.proto.
    String claim = "";
    private String activity = "";
    private String instance = "";
    private long execution;
    private long activityId;
    private int tryNumber;
    private int attempt;
    private byte[] input = {};
    private String key = "";
    private String orchestration = "";
    private int version;
    private byte[] details = {};
    private long timeoutMs;
    private String queue = "";
    private String traceparent = "";
    private String tracestate = "";

    // In hand: from its arrival until its outcome is answered, or it is lost.
    /** Done when nothing may be sent for it any more. */
    final transient CompletableFuture<Void> lost = new CompletableFuture<>();

    private final transient CompletableFuture<Cancellation> cancelled = new CompletableFuture<>();
    private transient Executor executor;
    private transient long detailsMax;
    private transient Cancellation why;
    private transient Thread thread; // of the handler, while it runs
    private transient byte[] beat; // the newest heartbeat, if it was not answered yet

    private Task() {}

    public String activity() {
        return activity;
    }

    public String queue() {
        return queue;
    }

    public String orchestration() {
        return orchestration;
    }

    public int version() {
        return version;
    }

    public String instance() {
        return instance;
    }

    public long execution() {
        return execution;
    }

    public long activityId() {
        return activityId;
    }

    public int tryNumber() {
        return tryNumber;
    }

    /** How often this try has been claimed. */
    public int attempt() {
        return attempt;
    }

    public byte[] input() {
        return input;
    }

    /** The input as UTF-8. */
    public String inputText() {
        return new String(input, StandardCharsets.UTF_8);
    }

    /** The same for every try and every run of this activity: pass it on to services that must not do it twice. */
    public String key() {
        return key;
    }

    /** Of the last heartbeat before this claim. */
    public byte[] details() {
        return details;
    }

    /** Until this try's deadline, when it came; empty: it has none. */
    public Optional<Duration> timeout() {
        return timeoutMs == 0 ? Optional.empty() : Optional.of(Duration.ofMillis(timeoutMs < 0 ? Long.MAX_VALUE : timeoutMs));
    }

    /** W3C Trace Context of the start; empty: it had none. */
    public String traceparent() {
        return traceparent;
    }

    public String tracestate() {
        return tracestate;
    }

    /**
     * Says that it goes on, and stores {@code details} with the next renewal. The newest one counts.
     *
     * @throws IllegalArgumentException the details are larger than a payload may be.
     */
    public synchronized void heartbeat(byte[] details) {
        if (details.length > detailsMax)
            throw new IllegalArgumentException("details of " + details.length + " bytes; the limit is " + detailsMax);
        beat = details.clone();
    }

    public void heartbeat(String details) {
        heartbeat(details.getBytes(StandardCharsets.UTF_8));
    }

    public boolean isCancelled() {
        return cancellation().isPresent();
    }

    /** Why it is to end; empty: it is not. */
    public synchronized Optional<Cancellation> cancellation() {
        return Optional.ofNullable(why);
    }

    /** Is done when the task is to end, by a thread of the worker's, besides the interrupt. */
    public CompletionStage<Cancellation> whenCancelled() {
        return cancelled.minimalCompletionStage();
    }

    /** @throws CancellationException the task is to end. */
    public void throwIfCancelled() {
        cancellation().ifPresent(cause -> {
            throw new CancellationException(cause.kind());
        });
    }

    // ---- for its session and its worker ----

    synchronized void begin(long heartbeatMax, Executor teller) {
        detailsMax = heartbeatMax;
        executor = teller;
    }

    /** The thread is interrupted when the task is cancelled, until {@link #ended}. */
    synchronized void runsOn(Thread handler) {
        thread = handler;
        if (why != null) handler.interrupt();
    }

    synchronized void ended() {
        thread = null;
        Thread.interrupted(); // it was for the handler
    }

    /** The first one counts. */
    synchronized void cancel(String kind, String reason, long graceMs) {
        if (why != null) return;
        Cancellation cause = new Cancellation(kind, reason, Duration.ofMillis(graceMs));
        why = cause;
        if (thread != null) thread.interrupt();
        cancelled.completeAsync(() -> cause, executor);
    }

    void lose(String kind, String reason) {
        lost.complete(null);
        cancel(kind, reason, 0);
    }

    /** For a renewal, with the heartbeat if there is one of at most so many bytes. */
    synchronized RunningTask running(long room) {
        boolean goes = beat != null && beat.length <= room;
        return new RunningTask(claim, goes ? beat : null, goes ? true : null);
    }

    /** A heartbeat of {@link #running} has arrived. */
    synchronized void arrived(byte[] sent) {
        if (beat == sent) beat = null;
    }
}
