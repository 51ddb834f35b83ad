package dev.thole.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.thole.client.Wire.Answer;
import dev.thole.client.Wire.Ask;
import io.nats.client.Connection;
import io.nats.client.impl.Headers;
import java.net.URLEncoder;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
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
    private static final Set<String> ENDS = Set.of("completed", "failed", "cancelled", "terminated");

    private final Link link;
    private final String prefix;
    private final Duration timeout;
    private final Who who;
    private final Duration waitLimit;

    /** With 30 s for each call, all repetitions together, and 10 minutes for {@link #wait}. */
    public Client(Connection nats, String namespace) {
        this(new Link(nats), "thole." + Worker.checked(namespace) + ".gateway.client.", Duration.ofSeconds(30),
            new Who(ownActor(), "", "thole for Java", carrier -> {}), Duration.ofMinutes(10));
    }

    private Client(Link link, String prefix, Duration timeout, Who who, Duration waitLimit) {
        this.waitLimit = waitLimit;
        this.link = link;
        this.prefix = prefix;
        this.timeout = timeout;
        this.who = who;
    }

    /** The same client with another time for each call, {@link #wait} among them. */
    public Client withTimeout(Duration value) {
        return new Client(link, prefix, value, who, value);
    }

    /** The same client with another time for {@link #wait}. */
    public Client withWaitLimit(Duration value) {
        return new Client(link, prefix, timeout, who, value);
    }

    /**
     * The same client for another one who asks, at most 200 bytes of printable ASCII: recorded with what is asked for. Without it:
     * $THOLE_ACTOR, else USER@HOST.
     */
    public Client withActor(String value) {
        return new Client(link, prefix, timeout, new Who(value, who.vouched, who.name, who.trace), waitLimit);
    }

    /**
     * The same client for one who asks, on a connection whose permissions give it that name: NATS vouches for it, and what {@link #withActor}
     * says does not count. At most 200 bytes; empty: none.
     */
    public Client withVouchedActor(String value) {
        return new Client(link, prefix, timeout, new Who(who.actor, value, who.name, who.trace), waitLimit);
    }

    /** The same client as part of another program, whose name has at most 64 bytes. */
    public Client withName(String value) {
        return new Client(link, prefix, timeout, new Who(who.actor, who.vouched, value, who.trace), waitLimit);
    }

    /** The same client with what adds the W3C Trace Context of a request: {@code carrier -> propagator.inject(Context.current(), carrier, Map::put)}. */
    public Client withTrace(Consumer<Map<String, String>> value) {
        return new Client(link, prefix, timeout, new Who(who.actor, who.vouched, who.name, value), waitLimit);
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
     * @param requireKnown {@link Status#NOT_FOUND}, and nothing is started, when no engine knows the orchestration.
     * @param event is delivered in any case, whether the instance is started now or was before: signal with start. Empty: none.
     */
    public record Start(String instance, byte[] input, int version, String requestId, boolean requireKnown, String event, byte[] eventData) {
        public Start(String instance, byte[] input) {
            this(instance, input, 0, "");
        }

        public Start(String instance, byte[] input, int version, String requestId) {
            this(instance, input, version, requestId, false, "", null);
        }

        public Start onlyKnown() {
            return new Start(instance, input, version, requestId, true, event, eventData);
        }

        public Start withEvent(String name, byte[] data) {
            return new Start(instance, input, version, requestId, requireKnown, name, data);
        }
    }

    /**
     * Starts an instance and returns its id.
     *
     * @throws TholeException {@link Status#CONFLICT}: the id is in use by another start; with an event: by an instance that has ended.
     */
    public String start(String orchestration, Start start) throws TholeException, InterruptedException {
        String requestId = start.requestId.isEmpty() ? newId() : start.requestId;
        Ask asked = new Ask(start.instance, start.input, null, null, requestId, start.version, 0, false, start.requireKnown, start.eventData);
        Answer answer = start.event.isEmpty() ? call("start", orchestration, asked)
            : answered("start_event." + TholeException.name("orchestration", orchestration) + "~" + TholeException.name("event", start.event), asked);
        return answer.instance().isEmpty() ? start.instance : answer.instance();
    }

    /**
     * @return a note when the instance's code does not run: why, and what would help; empty when it does.
     * @throws TholeException {@link Status#CONFLICT}: the instance has ended.
     */
    public String signal(String instance, String event, byte[] data) throws TholeException, InterruptedException {
        return call("signal", event, new Ask(instance, null, data, null, newId(), 0, 0)).note();
    }

    /**
     * @return a note, as of {@link #signal}.
     * @throws TholeException {@link Status#CONFLICT}: the instance has ended. {@link Status#NOT_FOUND}: there is none.
     */
    public String cancel(String instance, String reason) throws TholeException, InterruptedException {
        return call("cancel", null, new Ask(instance, null, null, reason, newId(), 0, 0)).note();
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
     * @throws TholeException {@link Status#TIMEOUT}: it has not; {@link TholeException#state} and its like say how it stands, why, and what
     *     would help. {@link Status#NOT_FOUND}: there is none.
     */
    public Ended wait(String instance) throws TholeException, InterruptedException {
        Answer answer = ask("wait", new Ask(instance, null, null, null, null, 0, WAIT_MS));
        if (!ENDS.contains(answer.state())) throw new TholeException(answer);
        return new Ended(answer.state(), (int) answer.status(), answer.output(), answer.text(), answer.errorType());
    }

    /**
     * How an instance stands, and what keeps it from going on.
     *
     * @throws TholeException {@link Status#NOT_FOUND}: there is none.
     */
    public Instance describe(String instance) throws TholeException, InterruptedException {
        Answer answer = call("describe", null, new Ask(instance, null, null, null, null, 0, 0));
        Instance i = answer.info() != null ? answer.info() : Link.read("{\"instances\":[{}]}".getBytes(UTF_8)).instances().get(0);
        return new Instance(i.instance(), i.orchestration(), i.version(), i.execution(), i.state(), i.reason(), i.detail(), i.customStatus(),
            i.parent(), i.createdMs(), i.updatedMs(), i.turns(), i.openActivities(), i.openTimers(), answer.hindrances());
    }

    /** Instances, newest first: one page. The next one is {@link Instance.Filter#behind} its last one; an empty one is the end. */
    public List<Instance> list(Instance.Filter filter) throws TholeException, InterruptedException {
        return answered("list", filter).instances();
    }

    /** Completes a task whose activity has returned {@link Task#LATER}, by its token. Too late, or again, it changes nothing. */
    public void completeActivity(String token, byte[] output) throws TholeException, InterruptedException {
        answered("complete_activity", new Wire.CompleteActivity(token, output, null));
    }

    /** Fails such a task. */
    public void failActivity(String token, ActivityFailure failure) throws TholeException, InterruptedException {
        Wire.Failure told = new Wire.Failure(failure.getMessage(), failure.type(), failure.isLast());
        answered("complete_activity", new Wire.CompleteActivity(token, null, told));
    }

    /** @param name the last part of the subject; null: none. */
    private Answer call(String operation, String name, Ask body) throws TholeException, InterruptedException {
        return answered(name == null ? operation : operation + "." + TholeException.name(operation, name), body);
    }

    private Answer answered(String operation, Object body) throws TholeException, InterruptedException {
        Answer answer = ask(operation, body);
        if (answer.status() != Status.OK) throw new TholeException(answer);
        return answer;
    }

    /** Repeats until there is an answer that counts, or no time. */
    private Answer ask(String operation, Object asked) throws TholeException, InterruptedException {
        boolean waits = operation.equals("wait");
        long deadline = Link.nowMs() + (waits ? waitLimit : timeout).toMillis();
        Headers sender = who.headers();
        String subject = prefix + operation + who.by();
        Pause pause = new Pause();
        Answer last = Answer.none(Status.UNAVAILABLE, "no answer");
        for (;;) {
            long leftMs = deadline - Link.nowMs();
            if (leftMs <= 0 && last.status() == Status.NO_ANSWER) throw new TholeException(Status.UNAVAILABLE, last.text());
            if (leftMs <= 0) throw new TholeException(last);
            long waitMs = !waits ? 0 : Math.max(1, Math.min(leftMs - Math.min(leftMs / 10, 300), WAIT_MS)); // the answer comes in time
            Object body = waits ? ((Ask) asked).waiting(waitMs, leftMs <= WAIT_MS) : asked;
            long timeoutMs = Math.min(leftMs, waitMs + Math.min(Math.max(leftMs / 2, 500), ANSWER_MS));
            Answer answer = link.ask(subject, Wire.bytes(body), timeoutMs, sender, () -> false);
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
