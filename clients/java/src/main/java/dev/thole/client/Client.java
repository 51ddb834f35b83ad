package dev.thole.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.thole.client.Wire.Answer;
import dev.thole.client.Wire.Ask;
import io.nats.client.Connection;
import io.nats.client.impl.Headers;
import java.net.URLEncoder;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * Starts, signals, queries and awaits instances. Requests that are not answered are repeated until there is no time left, then
 * the error is {@link Status#UNAVAILABLE}; what changes something is done once. Thread-safe. To cancel a call, interrupt its thread.
 */
public final class Client {
    private static final long ANSWER_MS = 5_000;
    private static final long WAIT_MS = 10_000;

    private final Link link;
    private final String prefix;
    private final Duration timeout;
    private final Who who;

    /** With 30 s for each call, all repetitions together. */
    public Client(Connection nats, String namespace) {
        this(new Link(nats), "thole." + Worker.checked(namespace) + ".gateway.client.", Duration.ofSeconds(30),
            new Who(ownActor(), "", "thole for Java", carrier -> {}));
    }

    private Client(Link link, String prefix, Duration timeout, Who who) {
        this.link = link;
        this.prefix = prefix;
        this.timeout = timeout;
        this.who = who;
    }

    /** The same client with another time for each call. */
    public Client withTimeout(Duration value) {
        return new Client(link, prefix, value, who);
    }

    /**
     * The same client for another one who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Without it:
     * $THOLE_ACTOR, else USER@HOST.
     */
    public Client withActor(String value) {
        return new Client(link, prefix, timeout, new Who(value, who.vouched, who.name, who.trace));
    }

    /**
     * The same client for one who asks, on a connection whose permissions give it that name: NATS vouches for it, and what {@link #withActor}
     * says does not count. At most 200 bytes; empty: none.
     */
    public Client withVouchedActor(String value) {
        return new Client(link, prefix, timeout, new Who(who.actor, value, who.name, who.trace));
    }

    /** The same client as part of another program, whose name has at most 64 bytes. */
    public Client withName(String value) {
        return new Client(link, prefix, timeout, new Who(who.actor, who.vouched, value, who.trace));
    }

    /** The same client with what adds the W3C Trace Context of a request: {@code carrier -> propagator.inject(Context.current(), carrier, Map::put)}. */
    public Client withTrace(Consumer<Map<String, String>> value) {
        return new Client(link, prefix, timeout, new Who(who.actor, who.vouched, who.name, value));
    }

    private static String ownActor() {
        String told = System.getenv("THOLE_ACTOR");
        if (told != null && !told.isEmpty()) return told;
        return String.format("%.100s@", System.getProperty("user.name")).replaceAll("[^ -~]", "?") + Link.host();
    }

    /** Who asks. */
    private record Who(String actor, String vouched, String name, Consumer<Map<String, String>> trace) {
        /** The end of a subject, encoded as ids are. */
        String by() throws TholeException {
            if (vouched.getBytes(UTF_8).length > 200 || vouched.indexOf('\0') >= 0 || !UTF_8.newEncoder().canEncode(vouched))
                throw new TholeException(Status.INVALID, "the vouched actor is no UTF-8 without NUL, or longer than 200 bytes");
            String by = URLEncoder.encode(vouched, UTF_8).replace("+", "%20").replace(".", "%2E").replace("*", "%2A").replace("%7E", "~");
            return by.isEmpty() ? "" : ".by." + by;
        }

        Headers headers() throws TholeException {
            Map<String, String> said = new HashMap<>();
            trace.accept(said);
            said.keySet().retainAll(Set.of("traceparent", "tracestate"));
            said.put("Thole-Actor", actor);
            said.put("Thole-Client", name);
            Headers headers = new Headers();
            for (Map.Entry<String, String> one : said.entrySet()) {
                if (!one.getValue().matches("[ -~]*") || actor.length() > 200 || name.length() > 64)
                    throw new TholeException(Status.INVALID, one.getKey() + " is no text of printable ASCII, or too long");
                headers.put(one.getKey(), one.getValue());
            }
            return headers;
        }
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
        Answer answer = call("start", orchestration, new Ask(start.instance, start.input, null, null, requestId, start.version, 0));
        return answer.instance().isEmpty() ? start.instance : answer.instance();
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. */
    public void signal(String instance, String event, byte[] data) throws TholeException, InterruptedException {
        call("signal", event, new Ask(instance, null, data, null, newId(), 0, 0));
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. {@link Status#NOT_FOUND}: there is none. */
    public void cancel(String instance, String reason) throws TholeException, InterruptedException {
        call("cancel", null, new Ask(instance, null, null, reason, newId(), 0, 0));
    }

    /** @throws TholeException {@link Status#CONFLICT}: the instance has ended. {@link Status#NOT_FOUND}: there is none. */
    public void terminate(String instance, String reason) throws TholeException, InterruptedException {
        call("terminate", null, new Ask(instance, null, null, reason, newId(), 0, 0));
    }

    public byte[] query(String instance, String query, byte[] input) throws TholeException, InterruptedException {
        return call("query", query, new Ask(instance, input, null, null, null, 0, 0)).output();
    }

    /**
     * Waits until the instance has ended, however it did.
     *
     * @throws TholeException {@link Status#TIMEOUT}: it still runs. {@link Status#NOT_FOUND}: there is none.
     */
    public Ended wait(String instance) throws TholeException, InterruptedException {
        Answer answer = ask("wait", new Ask(instance, null, null, null, null, 0, WAIT_MS));
        if (answer.state().isEmpty() || answer.state().equals("running")) throw new TholeException(answer.status(), answer.text());
        return new Ended(answer.state(), (int) answer.status(), answer.output(), answer.text(), answer.errorType());
    }

    /** @param name the last part of the subject; null: none. */
    private Answer call(String operation, String name, Ask body) throws TholeException, InterruptedException {
        Answer answer = ask(name == null ? operation : operation + "." + TholeException.name(operation, name), body);
        if (answer.status() != Status.OK) throw new TholeException(answer.status(), answer.text());
        return answer;
    }

    /** Repeats until there is an answer that counts, or no time. */
    private Answer ask(String operation, Ask asked) throws TholeException, InterruptedException {
        long deadline = Link.nowMs() + timeout.toMillis();
        Headers sender = who.headers();
        String subject = prefix + operation + who.by();
        Pause pause = new Pause();
        Answer last = Answer.none(Status.UNAVAILABLE, "no answer");
        for (;;) {
            long leftMs = deadline - Link.nowMs();
            if (leftMs <= 0) throw new TholeException(last.status() == Status.NO_ANSWER ? Status.UNAVAILABLE : last.status(), last.text());
            long waitMs = asked.waitMs() == 0 ? 0 : Math.max(1, Math.min(leftMs / 2, asked.waitMs())); // leaves time for a repetition
            long timeoutMs = Math.min(leftMs, waitMs + Math.min(Math.max(leftMs / 2, 500), ANSWER_MS));
            Answer answer = link.ask(subject, Wire.bytes(asked.waiting(waitMs)), timeoutMs, sender, () -> false);
            if (answer.status() != Status.NO_ANSWER || last.status() != Status.TIMEOUT) last = answer;
            if (waitMs > 0 && answer.status() == Status.TIMEOUT) {
                pause.reset(); // it still runs
            } else if (answer.status() == Status.NO_ANSWER || answer.status() == Status.UNAVAILABLE) {
                Thread.sleep(Math.max(0, Math.min(pause.next(), deadline - Link.nowMs())));
            } else {
                return answer;
            }
        }
    }

    private static String newId() {
        return UUID.randomUUID().toString();
    }
}
