package dev.thole.client;

import dev.thole.client.Wire.RunningTask;
import dev.thole.client.Wire.TaskMessage;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** A task in hand: from its arrival until its outcome is answered, or it is lost. */
final class Held {
    final String claim;
    final Task task;
    /** Done when nothing may be sent for it any more. */
    final CompletableFuture<Void> lost = new CompletableFuture<>();

    private final CompletableFuture<Cancellation> cancelled = new CompletableFuture<>();
    private final Executor executor;
    private final long detailsMax;
    private Cancellation why;
    private Thread thread; // of the handler, while it runs
    private byte[] beat; // the newest heartbeat, if it was not answered yet

    Held(TaskMessage message, long detailsMax, Executor executor) {
        this.claim = message.claim;
        this.task = new Task(message, this);
        this.detailsMax = detailsMax;
        this.executor = executor;
    }

    synchronized Cancellation why() {
        return why;
    }

    CompletionStage<Cancellation> whenCancelled() {
        return cancelled.minimalCompletionStage();
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

    synchronized void heartbeat(byte[] details) {
        if (details.length > detailsMax)
            throw new IllegalArgumentException("details of " + details.length + " bytes; the limit is " + detailsMax);
        beat = details.clone();
    }

    /** For a renewal, with the heartbeat if there is one of at most so many bytes. */
    synchronized RunningTask running(long room) {
        boolean goes = beat != null && beat.length <= room;
        return new RunningTask(claim, goes ? beat : null, goes ? true : null);
    }

    /** A heartbeat of {@link #running} has arrived. */
    synchronized void arrived(byte[] details) {
        if (beat == details) beat = null;
    }
}
