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
    /** Who waits looks so often whether it still should. */
    static final long LOOK_MS = 50;

    boolean isConnected() {
        return nats.getStatus() == Connection.Status.CONNECTED;
    }

    /** A clock that nobody sets. */
    static long nowMs() {
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime());
    }

    /** Asks, and waits for the answer while it is wanted. {@link Status#NO_ANSWER}: nobody listens, not in time, or it may be lost. */
    Answer ask(String subject, byte[] body, long timeoutMs, Headers sender, BooleanSupplier unwanted) throws InterruptedException {
        long end = nowMs() + timeoutMs;
        Headers headers = new Headers(sender).put("Content-Type", "application/json");
        Duration limit = Duration.ofMillis(2 * timeoutMs + 10_000); // the loop has the one that counts
        CompletableFuture<Message> asked = null; // it is cancelled when nobody listens
        long connection = 0;
        while (nowMs() < end && !unwanted.getAsBoolean()) {
            try {
                if (asked != null) return read(asked.get(LOOK_MS, TimeUnit.MILLISECONDS).getData());
                connection = nats.getStatistics().getReconnects();
                if (isConnected()) asked = nats.requestWithTimeout(subject, headers, body, limit);
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

    /** An answer, or a notice; one that cannot be read names no claim. */
    static Answer read(byte[] data) {
        try {
            Answer answer = Wire.JSON.readValue(data, Answer.class);
            if (answer != null) return answer;
        } catch (IOException err) {
            // as null
        }
        return Answer.none(Status.UNAVAILABLE, "the answer is none of a gateway");
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
