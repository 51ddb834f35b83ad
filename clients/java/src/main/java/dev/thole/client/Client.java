package dev.thole.client;

import dev.thole.client.Wire.Answer;
import dev.thole.client.Wire.Ask;
import io.nats.client.Connection;
import io.nats.client.impl.Headers;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Starts, signals, queries and awaits instances. Requests that are not answered are repeated until there is no time left, then
 * the error is {@link Status#UNAVAILABLE}; what changes something is done once. Thread-safe. To cancel a call, interrupt its thread.
 */
public final class Client implements AutoCloseable {
    private static final long ANSWER_MS = 5_000;
    private static final long WAIT_MS = 10_000;
    private static final CompletableFuture<Void> NEVER = new CompletableFuture<>();

    private final Link link;
    private final String prefix;
    private final Duration timeout;
    private final String actor;
    private final String name;
    private final Consumer<Map<String, String>> trace;

    /** With 30 s for each call, all repetitions together. */
    public Client(Connection nats, String namespace) {
        this(new Link(nats), "thole." + Worker.checked(namespace) + ".gateway.client.", Duration.ofSeconds(30), ownActor(), "thole for Java", carrier -> {});
    }

    private Client(Link link, String prefix, Duration timeout, String actor, String name, Consumer<Map<String, String>> trace) {
        this.link = link;
        this.prefix = prefix;
        this.timeout = timeout;
        this.actor = actor;
        this.name = name;
        this.trace = trace;
    }

    /** The same client with another time for each call; closing one closes both. */
    public Client withTimeout(Duration value) {
        return new Client(link, prefix, value, actor, name, trace);
    }

    /**
     * The same client for another one who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Without it:
     * $THOLE_ACTOR, else USER@HOST.
     */
    public Client withActor(String value) {
        return new Client(link, prefix, timeout, value, name, trace);
    }

    /** The same client as part of another program, whose name has at most 64 bytes. */
    public Client withName(String value) {
        return new Client(link, prefix, timeout, actor, value, trace);
    }

    /** The same client with what adds the W3C Trace Context of a request: {@code carrier -> propagator.inject(Context.current(), carrier, Map::put)}. */
    public Client withTrace(Consumer<Map<String, String>> value) {
        return new Client(link, prefix, timeout, actor, name, value);
    }

    private static String ownActor() {
        String told = System.getenv("THOLE_ACTOR");
        if (told != null && !told.isEmpty()) return told;
        String host;
        try {
            host = InetAddress.getLocalHost().getHostName();
        } catch (UnknownHostException err) {
            host = "";
        }
        return String.format("%.100s@%.99s", System.getProperty("user.name"), host).replaceAll("[^ -~]", "?");
    }

    /** Who asks, as headers. */
    private Headers sender() throws TholeException {
        Map<String, String> carrier = new HashMap<>();
        trace.accept(carrier);
        Map<String, String> said = new LinkedHashMap<>(Map.of("Thole-Actor", actor, "Thole-Client", name));
        carrier.keySet().retainAll(Set.of("traceparent", "tracestate"));
        said.putAll(carrier);
        Headers headers = new Headers();
        for (Map.Entry<String, String> one : said.entrySet()) {
            if (!one.getValue().matches("[ -~]*") || actor.length() > 200 || name.length() > 64)
                throw new TholeException(Status.INVALID, one.getKey() + " is no text of printable ASCII, or too long");
            headers.put(one.getKey(), one.getValue());
        }
        return headers;
    }

    /**
     * How an instance has ended.
     *
     * @param state completed, failed, cancelled or terminated.
     * @param text failure text, or reason.
     */
    public record Ended(String state, int status, byte[] output, String text, String errorType) {}

    /**
     * How to start an instance.
     *
     * @param instance its id; empty: a random one.
     * @param version 0: the newest.
     * @param requestId the same for every repetition of one start; empty: a new one.
     */
    public record Start(String instance, byte[] input, int version, String requestId) {
        public Start(String instance, byte[] input) {
            this(instance, input, 0, "");
        }
    }

    /**
     * Starts an instance and returns its id.
     *
     * @throws TholeException {@link Status#CONFLICT}: the id is in use by another start.
     */
    public String start(String orchestration, Start start) throws TholeException, InterruptedException {
        String requestId = start.requestId.isEmpty() ? newId() : start.requestId;
        Answer answer = call("start." + TholeException.name("orchestration", orchestration), new Ask(start.instance, start.input, null, null, requestId, start.version, null));
        return answer.instance.isEmpty() ? start.instance : answer.instance;
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. */
    public void signal(String instance, String event, byte[] data) throws TholeException, InterruptedException {
        call("signal." + TholeException.name("event", event), new Ask(instance, null, data, null, newId(), null, null));
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. {@link Status#NOT_FOUND}: there is none. */
    public void cancel(String instance, String reason) throws TholeException, InterruptedException {
        call("cancel", new Ask(instance, null, null, reason, newId(), null, null));
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. {@link Status#NOT_FOUND}: there is none. */
    public void terminate(String instance, String reason) throws TholeException, InterruptedException {
        call("terminate", new Ask(instance, null, null, reason, newId(), null, null));
    }

    public byte[] query(String instance, String query, byte[] input) throws TholeException, InterruptedException {
        return call("query." + TholeException.name("query", query), new Ask(instance, input, null, null, null, null, null)).output;
    }

    /**
     * Waits until the instance has ended, however it did.
     *
     * @throws TholeException {@link Status#TIMEOUT}: it still runs. {@link Status#NOT_FOUND}: there is none.
     */
    public Ended wait(String instance) throws TholeException, InterruptedException {
        Answer answer = ask("wait", new Ask(instance, null, null, null, null, null, 1L));
        if (answer.state.isEmpty() || answer.state.equals("running")) throw new TholeException(answer.status, answer.text);
        return new Ended(answer.state, answer.status, answer.output, answer.text, answer.errorType);
    }

    @Override
    public void close() {
        link.close();
    }

    private Answer call(String operation, Ask body) throws TholeException, InterruptedException {
        Answer answer = ask(operation, body);
        if (answer.status != Status.OK) throw new TholeException(answer.status, answer.text);
        return answer;
    }

    /** Repeats until there is an answer that counts, or no time. */
    private Answer ask(String operation, Ask asked) throws TholeException, InterruptedException {
        long deadline = System.nanoTime() + timeout.toNanos();
        boolean waits = asked.waitMs() != null;
        Headers sender = sender();
        Pause pause = new Pause();
        Answer last = Answer.none(Status.UNAVAILABLE, "no answer");
        for (;;) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            if (leftMs <= 0) throw new TholeException(last.status > 0 ? last.status : Status.UNAVAILABLE, last.text);
            long waitMs = waits ? Math.max(1, Math.min(leftMs / 2, WAIT_MS)) : 0; // leaves time for a repetition
            long timeoutMs = Math.min(leftMs, waitMs + Math.min(Math.max(leftMs / 2, 500), ANSWER_MS));
            Ask body = !waits ? asked : new Ask(asked.instance(), null, null, null, null, null, waitMs);
            Answer answer = link.request(prefix + operation, body, timeoutMs, NEVER, sender);
            if (answer.status >= 0 || last.status != Status.TIMEOUT) last = answer;
            if (waits && answer.status == Status.TIMEOUT) {
                pause.reset();
                continue; // it still runs
            }
            if (answer.status >= 0 && answer.status != Status.UNAVAILABLE) return answer;
            leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            Pause.sleep(Math.min(pause.next(), leftMs), NEVER);
        }
    }

    private static String newId() {
        return UUID.randomUUID().toString();
    }
}
