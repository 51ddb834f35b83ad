package dev.thole.client;

import dev.thole.client.Wire.Answer;
import io.nats.client.Connection;
import io.nats.client.Message;
import io.nats.client.impl.Headers;
import java.io.IOException;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;

/** Requests over a connection. Nothing is sent while it is cut, and what was asked before a cut has no answer. */
record Link(Connection nats) {
    static final Headers NO_HEADERS = new Headers();
    private static final long LOOK_MS = 50;

    boolean isConnected() {
        return nats.getStatus() == Connection.Status.CONNECTED;
    }

    long maxPayload() {
        return nats.getMaxPayload() > 0 ? nats.getMaxPayload() : 1 << 20;
    }

    /** Asks, and waits for the answer while it is wanted. {@link Status#NO_ANSWER}: nobody listens, not in time, or it may be lost. */
    Answer ask(String subject, byte[] body, long timeoutMs, Headers sender, BooleanSupplier unwanted) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        CompletableFuture<Message> asked = null;
        long connection = 0;
        while (System.nanoTime() - end < 0 && !unwanted.getAsBoolean()) {
            try {
                if (asked != null) return read(asked.get(LOOK_MS, TimeUnit.MILLISECONDS).getData());
                connection = nats.getStatistics().getReconnects();
                if (isConnected()) asked = send(subject, body, timeoutMs, sender);
                else Thread.sleep(LOOK_MS);
            } catch (TimeoutException err) {
                if (!isConnected() || connection != nats.getStatistics().getReconnects()) break;
            } catch (CancellationException | ExecutionException err) {
                return Answer.none(Status.NO_ANSWER, "no gateway answers");
            } catch (IllegalArgumentException err) {
                return Answer.none(Status.INVALID, "it cannot be sent: " + err.getMessage());
            } catch (IllegalStateException err) {
                return Answer.none(Status.NO_ANSWER, "the connection: " + err.getMessage());
            }
        }
        if (asked != null) asked.cancel(true);
        return Answer.none(Status.NO_ANSWER, isConnected() ? "no answer in time" : "the connection is cut");
    }

    /** It is cancelled when nobody listens. */
    private CompletableFuture<Message> send(String subject, byte[] body, long timeoutMs, Headers sender) {
        Headers headers = new Headers(sender).put("Content-Type", "application/json");
        return nats.requestWithTimeout(subject, headers, body, Duration.ofMillis(2 * timeoutMs + 10_000));
    }

    private static Answer read(byte[] data) {
        Answer answer = parsed(data, Answer.class);
        return answer != null ? answer : Answer.none(Status.UNAVAILABLE, "the answer is none of a gateway");
    }

    /** Null if it is no such message. */
    static <T> T parsed(byte[] data, Class<T> type) {
        try {
            return Wire.JSON.readValue(data, type);
        } catch (IOException err) {
            return null;
        }
    }

    /** The name of this machine, in printable ASCII, at most 64 bytes. */
    static String host() {
        try {
            return String.format("%.64s", InetAddress.getLocalHost().getHostName()).replaceAll("[^ -~]", "?");
        } catch (UnknownHostException err) {
            return "";
        }
    }
}
