package dev.thole.client;

import com.google.gson.JsonElement;
import com.google.gson.JsonParseException;
import dev.thole.client.Wire.Answer;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import io.nats.client.MessageHandler;
import io.nats.client.impl.Headers;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Requests over a connection. Nothing is sent while it is cut, and what was asked before a cut counts as not answered. Answers
 * come to an inbox of its own: jnats does not tell "no responders" from "no answer" unless its user's options say so.
 */
final class Link implements AutoCloseable {
    static final Headers NO_HEADERS = new Headers();

    private final Connection nats;
    private final Dispatcher dispatcher;
    private final String inbox;
    private final ConnectionListener listener = (connection, event) -> changed(event);
    private final Map<String, CompletableFuture<Answer>> pending = new ConcurrentHashMap<>();
    private final AtomicLong number = new AtomicLong();
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private volatile CompletableFuture<Void> back = new CompletableFuture<>();

    Link(Connection nats) {
        this.nats = nats;
        nats.addConnectionListener(listener);
        dispatcher = nats.createDispatcher();
        inbox = nats.createInbox() + ".";
        dispatcher.subscribe(inbox + "*", this::answered);
    }

    long maxPayload() {
        return nats.getMaxPayload() > 0 ? nats.getMaxPayload() : 1 << 20;
    }

    boolean isConnected() {
        return nats.getStatus() == Connection.Status.CONNECTED;
    }

    /** Done when the connection has been closed for ever. */
    CompletableFuture<Void> closed() {
        return closed;
    }

    String newInbox(MessageHandler handler) {
        String subject = nats.createInbox();
        dispatcher.subscribe(subject, handler);
        return subject;
    }

    void forget(String subject) {
        if (dispatcher.isActive()) dispatcher.unsubscribe(subject);
    }

    @Override
    public void close() {
        nats.removeConnectionListener(listener);
        if (nats.getStatus() != Connection.Status.CLOSED) nats.closeDispatcher(dispatcher);
    }

    private void changed(ConnectionListener.Events event) {
        switch (event) {
            case CONNECTED, RECONNECTED, RESUBSCRIBED -> {
                CompletableFuture<Void> waited = back;
                back = new CompletableFuture<>();
                waited.complete(null);
            }
            case DISCONNECTED -> pending.values().forEach(answer -> answer.complete(Answer.none(Status.NO_ANSWER, "the connection was cut")));
            case CLOSED -> closed.complete(null);
            default -> {}
        }
    }

    /** Asks at once; the future is never exceptional, and is completed by a thread that must not be blocked. */
    CompletableFuture<Answer> ask(String subject, Object body, long timeoutMs, Headers sender) {
        CompletableFuture<Answer> answer = new CompletableFuture<>();
        String token = Long.toString(number.incrementAndGet(), Character.MAX_RADIX);
        pending.put(token, answer);
        answer.whenComplete((told, err) -> pending.remove(token));
        answer.completeOnTimeout(Answer.none(Status.NO_ANSWER, "no answer"), Math.max(0, timeoutMs), TimeUnit.MILLISECONDS);
        if (!isConnected()) {
            answer.complete(Answer.none(Status.NO_ANSWER, "not connected to NATS"));
            return answer;
        }
        try {
            Headers headers = new Headers(sender).put("Content-Type", "application/json");
            nats.publish(subject, inbox + token, headers, Wire.GSON.toJson(body).getBytes(StandardCharsets.UTF_8));
        } catch (IllegalStateException | IllegalArgumentException err) {
            answer.complete(Answer.none(Status.NO_ANSWER, String.valueOf(err.getMessage())));
        }
        return answer;
    }

    /** Asks as soon as the connection is there, and waits. Returns no answer when {@code end} is done. */
    Answer request(String subject, Object body, long timeoutMs, CompletableFuture<?> end, Headers sender) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        CompletableFuture<Void> again = back;
        while (!isConnected() && !end.isDone() && deadline - System.nanoTime() > 0) {
            Pause.sleep(Math.min(100, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()) + 1), CompletableFuture.anyOf(again, end));
            again = back;
        }
        CompletableFuture<Answer> answer = ask(subject, body, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()), sender);
        try {
            CompletableFuture.anyOf(answer, end).get();
        } catch (ExecutionException err) {
            throw new IllegalStateException(err);
        }
        return answer.getNow(Answer.none(Status.NO_ANSWER, "not waited for"));
    }

    private void answered(Message message) {
        CompletableFuture<Answer> answer = pending.get(message.getSubject().substring(inbox.length()));
        if (answer == null) return;
        if (message.isStatusMessage()) {
            boolean none = message.getStatus().getCode() == 503;
            answer.complete(Answer.none(none ? Status.NO_RESPONDERS : Status.NO_ANSWER, message.getStatus().getMessageWithCode()));
        } else {
            answer.complete(read(message.getData()));
        }
    }

    private static Answer read(byte[] data) {
        Answer answer = parsed(data, Answer.class);
        return answer != null ? answer : Answer.none(Status.NO_ANSWER, "the answer is none of a gateway");
    }

    /** Null if it is no such message. */
    static <T> T parsed(byte[] data, Class<T> type) {
        try {
            JsonElement tree = Wire.GSON.fromJson(new String(data, StandardCharsets.UTF_8), JsonElement.class);
            return tree != null && tree.isJsonObject() ? Wire.GSON.fromJson(tree, type) : null;
        } catch (JsonParseException | IllegalArgumentException err) {
            return null;
        }
    }
}
