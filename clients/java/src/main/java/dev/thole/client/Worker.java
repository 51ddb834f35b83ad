package dev.thole.client;

import dev.thole.client.Wire.*;
import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.impl.Headers;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Runs activities of one queue, each on a thread of its own. Made by {@link #builder}.
 *
 * <p>The thread in {@link #run} opens sessions, one after the other, each of which goes on with the tasks of the one before
 * (docs/gateway.md, "A worker"). A session has a thread that asks for tasks and one that renews, and the thread of each task completes
 * it in whatever session is open. The state changes under the lock.
 */
public final class Worker implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Worker.class.getName());
    private static final long ANSWER_MS = 5_000;
    private static final long NEXT_MORE_MS = 5_000;
    private static final long COMPLETE_MS = 10_000;
    private static final long CLOSE_MORE_MS = 10_000;
    private static final long FOREVER_MS = Long.MAX_VALUE / 2;
    private static final int DONE_MAX = 1_000; // claims that are remembered so that a task which comes again is known
    private static final int TEXT_MAX = 4096;
    private static final long DETAILS_MAX = 16 * 1024; // of a gateway that does not say

    private final Builder options;
    private final Link link;
    private final Dispatcher dispatcher;
    private final ExecutorService threads;
    private final AtomicBoolean started = new AtomicBoolean();
    private final Map<String, Task> hand = new ConcurrentHashMap<>(); // by claim, until the outcome is answered, or the task is lost
    private final Set<String> done = new LinkedHashSet<>(); // claims that were in hand
    private final Pause openPause = new Pause();
    private volatile String inbox; // of the newest session, or where its open is to tell
    private volatile Answer session; // the answer that opened it; null: it is to be opened
    private volatile Answer last; // session to go on with; null: its lease is over, or there was none
    private long leaseEnd; // of the last session
    private volatile long answerMs = ANSWER_MS; // for open and renew, so that others can be asked within the lease
    private volatile long payloadMax;
    volatile long detailsMax;
    private volatile int busy; // slots taken: by tasks in hand, and by handlers that still run
    private volatile boolean stopping;
    private long stopEnd; // when what still runs is to end
    private volatile boolean over;
    private TholeException error;

    private Worker(Builder options) {
        this.options = options;
        link = new Link(options.nats);
        dispatcher = options.nats.createDispatcher(message -> noticeArrived(message.getSubject(), Link.read(message.getData())));
        threads = Executors.newCachedThreadPool(run -> {
            Thread thread = new Thread(run, "thole-" + options.queue);
            thread.setDaemon(true); // handlers of lost tasks may run on
            return thread;
        });
    }

    public static Builder builder(Connection nats, String queue) {
        return new Builder(nats, queue);
    }

    static String checked(String value) {
        if (!TholeException.isName(value)) throw new IllegalArgumentException("\"" + value + "\" is no name: [A-Za-z0-9_-]{1,64}");
        return value;
    }

    /** Options of a worker. */
    public static final class Builder {
        private final Connection nats;
        private final String queue;
        private final Map<String, Activity> activities = new LinkedHashMap<>();
        private String namespace = "default";
        private String name = "java-worker";
        private int slots = 10;
        private Duration wait = Duration.ofSeconds(10);
        private Duration stopLimit = Duration.ofSeconds(30);
        private Consumer<String> warn = text -> LOG.log(System.Logger.Level.WARNING, text);

        private Builder(Connection nats, String queue) {
            this.nats = nats;
            this.queue = checked(queue);
        }

        /** {@code default} if it is not set. */
        public Builder namespace(String value) {
            namespace = checked(value);
            return this;
        }

        /** {@code [A-Za-z0-9_-]{1,64}}, shown in logs and lists. */
        public Builder name(String value) {
            name = checked(value);
            return this;
        }

        /** Tasks at a time: 10 if it is not set. */
        public Builder slots(int value) {
            slots = value;
            return this;
        }

        /** How long a request for tasks waits at the gateway: 10 s if it is not set, at most 60 s. */
        public Builder wait(Duration value) {
            wait = value;
            return this;
        }

        /** How long tasks may go on when the worker stops: 30 s if it is not set. */
        public Builder stopLimit(Duration value) {
            stopLimit = value;
            return this;
        }

        /** Takes warnings, for example of lost tasks; they are logged if it is not set. */
        public Builder warn(Consumer<String> value) {
            warn = value;
            return this;
        }

        public Builder activity(String activity, Activity run) {
            activities.put(checked(activity), run);
            return this;
        }

        public Worker build() {
            return new Worker(this);
        }
    }

    /**
     * Works until it is stopped, and then until the gateway holds nothing of this worker any more. A gateway or NATS server that
     * is away is no error: it is tried again for ever. A worker runs once.
     *
     * @throws TholeException the gateway refuses this worker, or the NATS connection was closed.
     * @throws InterruptedException the calling thread was interrupted: running tasks are given up.
     */
    public void run() throws TholeException, InterruptedException {
        if (started.getAndSet(true)) throw new IllegalStateException("a worker runs once");
        try {
            while (!await(Math.min(openPause.next() - Pause.FIRST_MS, answerMs), this::isDone)) { // at once at first
                Answer opened = open();
                if (opened == null) continue;
                spawn(() -> takeTasks(opened));
                spawn(() -> renew(opened));
                closeAtStop(opened);
            }
        } finally {
            end();
        }
        if (error != null) throw error;
    }

    /** Takes no new tasks, lets running ones end for up to the limit, and then tells them to. {@link #run} returns then. */
    public synchronized void stop() {
        if (!stopping) stopEnd = Link.nowMs() + options.stopLimit.toMillis();
        stopping = true;
        notifyAll();
    }

    /** Stops, and waits until {@link #run} has returned. */
    @Override
    public void close() throws InterruptedException {
        stop();
        if (started.getAndSet(true)) await(FOREVER_MS, threads::isShutdown);
        else end();
    }

    private synchronized void end() {
        over = true;
        leaseOver();
        threads.shutdown();
        notifyAll();
        if (options.nats.getStatus() != Connection.Status.CLOSED) options.nats.closeDispatcher(dispatcher);
    }

    /** The worker ends; with an error when it cannot go on. */
    private synchronized void endWith(TholeException err) {
        if (error == null) error = err;
        over = true;
        notifyAll();
    }

    /** When there is no session, nothing in hand, and it stops, there is nothing to close. Nor for long when a close has no answer. */
    private synchronized boolean isDone() {
        leaseOver();
        return over || stopping && hand.isEmpty() && (session == null || Link.nowMs() - stopEnd > CLOSE_MORE_MS);
    }

    private interface Job {
        void run() throws InterruptedException;
    }

    private void spawn(Job job) {
        threads.execute(() -> {
            try {
                job.run();
            } catch (InterruptedException | RuntimeException err) {
                endWith(new TholeException(Status.UNAVAILABLE, "a thread of the worker has ended: " + err));
            }
        });
    }

    /** Waits until it is so; false: the time is over. */
    private synchronized boolean await(long ms, BooleanSupplier so) throws InterruptedException {
        long end = Link.nowMs() + ms;
        while (!so.getAsBoolean()) {
            long leftMs = end - Link.nowMs();
            if (leftMs <= 0) return false;
            wait(Math.min(leftMs, Link.LOOK_MS)); // nothing notifies when the lease is over
        }
        return true;
    }

    // ---- sessions ----

    /** Opens a session that goes on with the tasks of the one before it, unless the lease of that is over. Null: there is none. */
    private Answer open() throws InterruptedException {
        try { // its own inbox: of a task that was moved the gateway before says that it is lost
            if (inbox != null) dispatcher.unsubscribe(inbox);
            inbox = options.nats.createInbox();
            dispatcher.subscribe(inbox);
        } catch (IllegalStateException err) {
            endWith(new TholeException(Status.UNAVAILABLE, "the NATS connection is closed"));
        }
        Answer before = last;
        byte[] body = Wire.bytes(new OpenSession(options.name, options.slots, options.activities.keySet(), inbox, Link.host(),
            before == null ? "" : before.session(), hand.keySet()));
        long sent = Link.nowMs();
        BooleanSupplier unwanted = () -> isDone() || last != before;
        Answer answer = call(null, "open." + options.queue, body, answerMs, unwanted);
        synchronized (this) {
            if (answer.status() != Status.OK || answer.subject().isEmpty() || answer.leaseMs() <= 0 || unwanted.getAsBoolean()) return null;
            answerMs = Math.max(1_000, Math.min(answer.leaseMs() / 5, ANSWER_MS));
            payloadMax = Math.min(answer.payloadMax().longValue(), options.nats.getMaxPayload() / 2);
            detailsMax = answer.detailsMax() == 0 ? DETAILS_MAX : answer.detailsMax();
            session = last = answer;
            renewed(sent, answer);
            notifyAll();
            return answer;
        }
    }

    /** Waits until a session ends, and closes it when the worker stops: it holds nothing any more when that is answered. */
    private void closeAtStop(Answer of) throws InterruptedException {
        await(FOREVER_MS, () -> stopping || !isOpen(of));
        Pause pause = new Pause();
        while (isOpen(of) && !isDone()) {
            long limitMs = Math.max(0, stopEnd - Link.nowMs());
            long timeoutMs = limitMs + of.graceMs() + CLOSE_MORE_MS;
            if (call(of, "close", Wire.bytes(new CloseSession(limitMs)), timeoutMs, () -> false).status() == Status.OK) endWith(null);
            await(pause.next(), () -> !isOpen(of));
        }
    }

    private synchronized boolean isOpen(Answer of) {
        leaseOver();
        return session == of;
    }

    /**
     * A request of a session while it is open and the answer is wanted, or, with null, one to open the next. The session ends if there is
     * no answer or its gateway does not go on, the worker if it is refused; but with complete that is about the outcome.
     */
    private Answer call(Answer of, String operation, byte[] body, long timeoutMs, BooleanSupplier unwanted) throws InterruptedException {
        String subject = of == null ? "thole." + options.namespace + ".gateway" : of.subject();
        BooleanSupplier end = () -> !isOpen(of) || unwanted.getAsBoolean();
        Answer answer = link.ask(subject + "." + operation, body, timeoutMs, new Headers(), end);
        synchronized (this) {
            if (end.getAsBoolean()) return Answer.none(Status.NO_ANSWER, "it is not wanted any more");
            long status = answer.status();
            String text = operation + ": " + answer.text();
            if (status == Status.OK) {
                if (of != null) openPause.reset();
            } else if (status == Status.DENIED || status == Status.INVALID && !operation.equals("complete")) {
                endWith(new TholeException(status, text));
            } else {
                boolean stops = status == Status.UNAVAILABLE && operation.equals("next"); // the gateway
                boolean ends = status == Status.NO_ANSWER || status == Status.NOT_FOUND || stops;
                options.warn.accept(ends && of != null ? "the session is interrupted: " + text : text);
                if (ends) session = null;
                notifyAll();
            }
        }
        return answer;
    }

    /** Asks for tasks until the session ends or the worker stops. What still comes then is taken all the same. */
    private void takeTasks(Answer of) throws InterruptedException {
        Pause pause = new Pause();
        long waitMs = options.wait.toMillis();
        while (await(FOREVER_MS, () -> stopping || !isOpen(of) || busy < options.slots) && !stopping && isOpen(of)) {
            Answer answer = call(of, "next", Wire.bytes(new NextTasks(options.slots - busy, waitMs)), waitMs + NEXT_MORE_MS, () -> false);
            if (answer.status() == Status.OK) {
                pause.reset();
                answer.tasks().forEach(task -> begin(of, new Task(task, this)));
            } else {
                await(pause.next(), () -> stopping || !isOpen(of));
            }
        }
    }

    /** Renews the session until it ends. */
    private void renew(Answer of) throws InterruptedException {
        Pause pause = new Pause();
        long everyMs = of.renewMs() > 0 && of.renewMs() <= of.leaseMs() / 2 ? of.renewMs() : of.leaseMs() / 3;
        long waitMs = everyMs;
        while (!await(waitMs, () -> !isOpen(of))) {
            List<Outcome> running = running();
            byte[] body = Wire.bytes(new RenewTasks(running));
            long sent = Link.nowMs();
            Answer answer = call(of, "renew", body, answerMs, () -> false);
            if (answer.status() != Status.OK) {
                waitMs = Math.min(pause.next(), everyMs);
                continue;
            }
            pause.reset();
            waitMs = sent + everyMs - Link.nowMs();
            synchronized (this) {
                if (!isOpen(of)) return;
                renewed(sent, answer);
                for (Outcome one : running) {
                    Task task = hand.get(one.claim());
                    if (task != null && task.beat == one) task.beat = null;
                }
            }
        }
    }

    /** What is in hand, with heartbeats as far as they fit into a message. */
    private synchronized List<Outcome> running() {
        List<Outcome> running = new ArrayList<>();
        long room = options.nats.getMaxPayload() / 16 * 9; // in base64 three quarters of what fits
        for (Task task : hand.values()) {
            boolean fits = task.beat != null && task.beat.details().length <= room;
            room -= task.claim().length() + 64 + (fits ? task.beat.details().length : 0);
            running.add(fits ? task.beat : new Outcome(task.claim(), null, null, false, null, false));
        }
        return running;
    }

    /** Takes over an answer to what was sent then. Lock held. */
    private void renewed(long sent, Answer answer) {
        leaseEnd = sent + last.leaseMs();
        answer.cancelled().forEach(this::notice);
        lose(answer.gone(), "lease_lost", "the claim is gone");
    }

    /**
     * Looks whether the lease is over, or the worker: then all is lost, and the next session is a new one, which may have claims of the
     * same names. Whoever waits calls it, and whoever is about to go by the lease: the process may have been stopped for long.
     */
    private synchronized void leaseOver() {
        if (last == null || !over && Link.nowMs() < leaseEnd) return;
        session = last = null;
        lose(hand.keySet(), over ? "shutdown" : "lease_lost", over ? "the worker ends" : "no renewal was answered for a lease");
        done.clear();
        notifyAll();
    }

    // ---- tasks ----

    /** Runs a task, unless its claim is known. When the session has ended it comes again. */
    private synchronized void begin(Answer of, Task task) {
        if (!isOpen(of) || task.claim().isEmpty() || hand.containsKey(task.claim()) || done.contains(task.claim())) return;
        hand.put(task.claim(), task);
        busy++;
        spawn(() -> {
            deliver(task, outcome(task));
            release();
        });
    }

    private synchronized void release() {
        busy--;
        notifyAll();
    }

    /** Sends an outcome, in one session after the other, until it is answered, or the task is lost. */
    private void deliver(Task task, Outcome outcome) throws InterruptedException {
        Pause pause = new Pause();
        boolean again = false; // it may be stored, although no answer came
        boolean refused = false;
        while (await(FOREVER_MS, () -> session != null || isLost(task)) && !isLost(task)) {
            Answer of = session;
            if (of == null) continue;
            Answer answer = call(of, "complete", Wire.bytes(new CompleteTasks(List.of(outcome))), COMPLETE_MS, () -> isLost(task));
            boolean told = answer.status() == Status.OK && !answer.results().isEmpty();
            Answer result = told ? answer.results().get(0) : answer;
            long status = result.status();
            if (status == Status.INVALID) {
                String text = "the gateway cannot take the outcome of " + task.activity() + " of " + task.instance() + ": " + result.text();
                options.warn.accept(text + "; it is a failed try");
                if (refused) endWith(new TholeException(Status.INVALID, text));
                refused = true;
                outcome = failure(task, text, "outcome_refused", false);
            } else if (told ? status == Status.UNAVAILABLE || status == Status.TIMEOUT : status != Status.FENCED) {
                await(pause.next(), () -> !isOpen(of) || isLost(task));
            } else {
                if (status == Status.FENCED && again)
                    options.warn.accept("an outcome was sent before, and may be stored: its claim is gone");
                else if (status != Status.OK) options.warn.accept("an outcome was refused: " + status + " " + result.text());
                forget(task);
            }
            again = true;
        }
    }

    private boolean isLost(Task task) {
        return hand.get(task.claim()) != task;
    }

    /** Its outcome is answered, or it is lost. */
    private synchronized void forget(Task task) {
        if (!hand.remove(task.claim(), task)) return;
        done.add(task.claim());
        if (done.size() > DONE_MAX) done.remove(done.iterator().next());
        notifyAll();
    }

    /** They may run elsewhere, or nowhere: their handlers are to end, and how they end is not sent. Lock held. */
    private void lose(Collection<String> claims, String kind, String why) {
        for (String claim : claims) {
            Task task = hand.get(claim);
            if (task == null) continue;
            options.warn.accept("task " + claim + " is lost: " + why);
            task.cancel(kind, why, 0);
            forget(task);
        }
    }

    private synchronized void noticeArrived(String at, Answer notice) {
        if (at.equals(inbox)) notice(notice);
    }

    /** Lock held. */
    private void notice(Answer notice) {
        Task task = hand.get(notice.claim());
        if (task != null) task.cancel(notice.kind(), notice.reason(), notice.graceMs());
    }

    /** Runs its activity. */
    private Outcome outcome(Task task) {
        Activity activity = options.activities.get(task.activity());
        if (activity == null) return failure(task, "this worker has no activity " + task.activity(), "unknown_activity", false);
        task.runsOn(Thread.currentThread());
        try {
            byte[] output = activity.run(task);
            if (output == Task.LATER && task.token().isEmpty())
                return failure(task, "this task cannot be completed later: it has no token", "no_token", true);
            if (output == Task.LATER) return new Outcome(task.claim(), null, null, false, null, false, true);
            long max = payloadMax;
            if (output == null || output.length <= max) return new Outcome(task.claim(), output, null, false, null, false);
            return failure(task, "the output has " + output.length + " bytes; the limit is " + max, "too_large", true);
        } catch (ActivityFailure failure) {
            return failure(task, String.valueOf(failure.getMessage()), failure.type(), failure.isLast());
        } catch (Throwable err) { // whatever it is, it must not end the worker
            if (task.isCancelled()) return told(task, null);
            return failure(task, err.getMessage() == null ? err.toString() : err.getMessage(), err.getClass().getSimpleName(), false);
        } finally {
            task.runsOn(null);
            Thread.interrupted(); // it was for the handler
        }
    }

    private Outcome failure(Task task, String text, String type, boolean last) {
        String allowed = type.replaceAll("[^A-Za-z0-9_.-]", "_");
        String cut = text.substring(0, Math.min(text.length(), TEXT_MAX)).replaceAll("[\\x00\\p{Cs}]", "\ufffd");
        return told(task, new Failure(cut, allowed.substring(0, Math.min(allowed.length(), 64)), last));
    }

    /** A failure, or without one a cancellation, with the newest heartbeat unless it has arrived. */
    private synchronized Outcome told(Task task, Failure failure) {
        Outcome beat = task.beat;
        return new Outcome(task.claim(), null, failure, failure == null, beat == null ? null : beat.details(), beat != null);
    }
}
