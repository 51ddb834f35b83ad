package dev.thole.client;

import dev.thole.client.Wire.*;
import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * Runs activities of one queue, each on a thread of its own. Made by {@link #builder}.
 *
 * <p>It has one session at a time, and each goes on with the tasks of the one before (docs/gateway.md, "A worker"). One thread opens and
 * renews, one asks for tasks, that of each task completes it, and the one in {@link #run} closes. The state changes under the lock.
 */
public final class Worker implements AutoCloseable {
    private static final System.Logger LOG = System.getLogger(Worker.class.getName());
    private static final long OPEN_MS = 5_000;
    private static final long NEXT_MORE_MS = 5_000;
    private static final long COMPLETE_MS = 10_000;
    private static final long CLOSE_MORE_MS = 10_000;
    private static final long FOREVER_MS = TimeUnit.DAYS.toMillis(365);
    private static final int DONE_MAX = 1_000; // claims that are remembered so that a task which comes again is known
    private static final int TEXT_MAX = 4096;
    private static final long DETAILS_MAX = 16 * 1024; // of a gateway that does not say

    private record Session(String id, String subject, long leaseMs, long renewMs, long graceMs, long payloadMax, long detailsMax) {
        /** How long a renewal, or an open that goes on with it, may take: others can be asked within the lease. */
        long answerMs() {
            return Math.max(1_000, Math.min(leaseMs / 5, OPEN_MS));
        }
    }

    private final Builder options;
    private final Link link;
    private final Dispatcher dispatcher;
    private final ExecutorService threads;
    private final AtomicBoolean started = new AtomicBoolean();
    private final CountDownLatch ended = new CountDownLatch(1);
    private final Map<String, Task> hand = new ConcurrentHashMap<>(); // by claim, until the outcome is answered, or the task is lost
    private final Set<String> done = new LinkedHashSet<>(); // claims that were in hand
    private final Pause openPause = new Pause();
    private String inbox; // of the newest session, or where its open is to tell
    private volatile Session session; // null: it is to be opened
    private Session last; // to go on with; null: its lease is over, or there was none
    private long leaseEnd; // of the last one; System.nanoTime
    private volatile int busy; // slots taken: by tasks in hand, and by handlers that still run
    private volatile boolean stopping;
    private volatile boolean over;
    private TholeException error;

    private Worker(Builder options) {
        this.options = options;
        link = new Link(options.nats);
        dispatcher = options.nats.createDispatcher(message -> noticeArrived(message.getSubject(), Link.parsed(message.getData(), Notice.class)));
        threads = Executors.newCachedThreadPool(run -> {
            Thread thread = new Thread(run, "thole-" + options.queue);
            thread.setDaemon(true);
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
            spawn(this::keepSession);
            spawn(this::takeTasks);
            await(FOREVER_MS, () -> stopping);
            closeSession();
        } finally {
            end();
        }
        if (error != null) throw error;
    }

    /** Takes no new tasks, lets running ones end for up to the limit, and then tells them to. {@link #run} returns then. */
    public synchronized void stop() {
        stopping = true;
        notifyAll();
    }

    /** Stops, and waits until {@link #run} has returned. */
    @Override
    public void close() throws InterruptedException {
        stop();
        if (started.getAndSet(true)) ended.await();
        else end();
    }

    private synchronized void end() {
        over = true;
        stop();
        loseAll("shutdown", "the worker ends");
        if (options.nats.getStatus() != Connection.Status.CLOSED) options.nats.closeDispatcher(dispatcher);
        threads.shutdown(); // handlers of given up tasks may still run
        ended.countDown();
    }

    /** The worker cannot go on. */
    private synchronized void fail(TholeException err) {
        if (error == null) error = err;
        over = true;
        session = null;
        stop();
    }

    private interface Job {
        void run() throws InterruptedException;
    }

    private void spawn(Job job) {
        threads.execute(() -> {
            try {
                job.run();
            } catch (InterruptedException | RuntimeException err) {
                fail(new TholeException(Status.UNAVAILABLE, "a thread of the worker has ended: " + err));
            }
        });
    }

    /** Waits until it is so; false: the time is over. */
    private synchronized boolean await(long ms, BooleanSupplier so) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        while (!so.getAsBoolean()) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime() + 999_999);
            if (leftMs <= 0) return false;
            wait(leftMs);
        }
        return true;
    }

    // ---- sessions ----

    /** Opens one after the other, and renews it. */
    private void keepSession() throws InterruptedException {
        while (!over) {
            await(openPauseMs(), () -> over);
            open();
            Session now = session;
            if (now != null) renewAll(now);
            if (leaseLeftMs() <= 0) loseAll("lease_lost", "no renewal was answered for a lease");
            if (options.nats.getStatus() == Connection.Status.CLOSED)
                fail(new TholeException(Status.UNAVAILABLE, "the NATS connection is closed"));
        }
    }

    /** Renews a session until it is over. */
    private void renewAll(Session of) throws InterruptedException {
        Pause pause = new Pause();
        long waitMs = of.renewMs;
        while (!await(Math.min(waitMs, leaseLeftMs()), () -> session != of)) {
            long sentAt = System.nanoTime();
            if (renew(of)) {
                pause.reset();
                waitMs = of.renewMs - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - sentAt);
            } else {
                waitMs = Math.min(pause.next(), of.renewMs);
            }
        }
    }

    private synchronized long leaseLeftMs() {
        return last == null ? FOREVER_MS : TimeUnit.NANOSECONDS.toMillis(leaseEnd - System.nanoTime());
    }

    /** At once, unless the last session was of no use. */
    private synchronized long openPauseMs() {
        return Math.min(openPause.next() - Pause.FIRST_MS, last == null ? OPEN_MS : last.leaseMs / 10);
    }

    /** Each session has its own: of a task that was moved the gateway before says that it is lost. */
    private synchronized String newInbox() {
        if (over) return ""; // nothing is sent then
        if (inbox != null) dispatcher.unsubscribe(inbox);
        inbox = options.nats.createInbox();
        dispatcher.subscribe(inbox);
        return inbox;
    }

    private void open() throws InterruptedException {
        Session before = last; // only this thread changes it while the worker runs
        List<String> claims = List.copyOf(hand.keySet());
        List<String> activities = List.copyOf(options.activities.keySet());
        String resume = before == null ? "" : before.id;
        byte[] body = Wire.bytes(new OpenSession(options.name, options.slots, activities, newInbox(), Link.host(), resume, claims));
        String subject = "thole." + options.namespace + ".gateway.open." + options.queue;
        long timeoutMs = Math.min(before == null ? OPEN_MS : before.answerMs(), leaseLeftMs());
        long sentAt = System.nanoTime();
        Answer answer = link.ask(subject, body, timeoutMs, Link.NO_HEADERS, () -> over);
        synchronized (this) {
            if (isRefused(answer)) fail(new TholeException(answer.status(), "open: " + answer.text()));
            if (answer.status() != Status.OK || answer.subject().isEmpty() || over) return;
            long payloadMax = Math.min(answer.payloadMax(), link.maxPayload() / 2);
            long detailsMax = answer.detailsMax() == 0 ? DETAILS_MAX : answer.detailsMax();
            session = last = new Session(answer.session(), answer.subject(), answer.leaseMs(), answer.renewMs(), answer.graceMs(), payloadMax, detailsMax);
            leaseEnd = sentAt + TimeUnit.MILLISECONDS.toNanos(answer.leaseMs());
            lose(answer.gone(), "lease_lost", "the claim is gone");
        }
    }

    private static boolean isRefused(Answer answer) {
        return answer.status() == Status.INVALID || answer.status() == Status.DENIED;
    }

    private boolean renew(Session of) throws InterruptedException {
        List<RunningTask> running = running();
        byte[] body = Wire.bytes(new RenewTasks(running));
        long sentAt = System.nanoTime();
        Answer answer = request(of, "renew", body, Math.min(of.answerMs(), leaseLeftMs()), () -> false);
        if (answer.status() != Status.OK) return false;
        synchronized (this) {
            leaseEnd = sentAt + TimeUnit.MILLISECONDS.toNanos(of.leaseMs);
            for (RunningTask sent : running) {
                Task task = hand.get(sent.claim());
                if (task != null && sent.heartbeat()) task.handle.arrived(sent.details());
            }
            answer.cancelled().forEach(this::notice);
            lose(answer.gone(), "lease_lost", "the claim is gone");
        }
        return true;
    }

    /** What is in hand, with heartbeats as far as they fit into a message. */
    private synchronized List<RunningTask> running() {
        List<RunningTask> running = new ArrayList<>();
        long room = link.maxPayload() / 16 * 9; // in base64 three quarters of what fits
        for (Task task : hand.values()) {
            RunningTask one = task.handle.running(task.claim(), room);
            room -= task.claim().length() + 64 + (one.heartbeat() ? one.details().length : 0);
            running.add(one);
        }
        return running;
    }

    /** One request of a session, while it is the one of now and the answer is wanted. */
    private Answer request(Session of, String operation, byte[] body, long timeoutMs, BooleanSupplier unwanted) throws InterruptedException {
        if (leaseLeftMs() <= 0) interrupted(of, "its lease is over");
        BooleanSupplier end = () -> session != of || unwanted.getAsBoolean();
        Answer answer = link.ask(of.subject + "." + operation, body, timeoutMs, Link.NO_HEADERS, end);
        if (end.getAsBoolean()) return Answer.none(Status.NO_ANSWER, "it is not wanted any more");
        if (answer.status() == Status.OK) openPause.reset();
        if (answer.status() == Status.NO_ANSWER || answer.status() == Status.NOT_FOUND) interrupted(of, operation + ": " + answer.text());
        boolean ofOutcome = answer.status() == Status.INVALID && operation.equals("complete");
        if (isRefused(answer) && !ofOutcome) fail(new TholeException(answer.status(), operation + ": " + answer.text()));
        return answer;
    }

    /** Its gateway is gone, or stops: another one goes on with it. */
    private synchronized void interrupted(Session it, String why) {
        if (session != it) return;
        warn("the session is interrupted: " + why);
        session = null;
        notifyAll();
    }

    /** Closes the session when the worker stops: what runs after the limit is told to end. Returns when nothing is in hand. */
    private void closeSession() throws InterruptedException {
        long limitEnd = System.nanoTime() + options.stopLimit.toNanos();
        Pause pause = new Pause();
        while (await(FOREVER_MS, () -> session != null || hand.isEmpty() || over)) {
            Session now = session;
            long leftMs = TimeUnit.NANOSECONDS.toMillis(limitEnd - System.nanoTime() + 999_999);
            if (over || hand.isEmpty() && (now == null || leftMs < -CLOSE_MORE_MS)) return;
            if (now == null) continue;
            long limitMs = Math.max(0, leftMs);
            long timeoutMs = limitMs + CLOSE_MORE_MS + (hand.isEmpty() ? 0 : now.graceMs);
            if (request(now, "close", Wire.bytes(new CloseSession(limitMs)), timeoutMs, () -> false).status() == Status.OK) return;
            await(pause.next(), () -> session != now);
        }
    }

    // ---- tasks ----

    /** Asks for tasks until the worker stops. What still comes then is taken all the same. */
    private void takeTasks() throws InterruptedException {
        Pause pause = new Pause();
        long waitMs = options.wait.toMillis();
        while (await(FOREVER_MS, () -> stopping || session != null && busy < options.slots) && !stopping) {
            Session now = session;
            if (now == null) continue;
            Answer answer = request(now, "next", Wire.bytes(new NextTasks(options.slots - busy, waitMs)), waitMs + NEXT_MORE_MS, () -> false);
            if (answer.status() == Status.OK) {
                pause.reset();
                answer.tasks().forEach(task -> take(now, new Task(task)));
            } else if (answer.status() == Status.UNAVAILABLE) {
                interrupted(now, "next: " + answer.text());
            } else {
                await(pause.next(), () -> session != now || stopping);
            }
        }
    }

    private synchronized void take(Session of, Task task) {
        if (session != of || task.claim().isEmpty() || hand.containsKey(task.claim()) || done.contains(task.claim())) return;
        task.handle.payloadMax = of.payloadMax;
        task.handle.detailsMax = of.detailsMax;
        hand.put(task.claim(), task);
        busy++;
        spawn(() -> {
            complete(task, outcome(task));
            release();
        });
    }

    private synchronized void release() {
        busy--;
        notifyAll();
    }

    /** Sends an outcome until it is answered, or the task is lost. */
    private void complete(Task task, Outcome outcome) throws InterruptedException {
        byte[] body = Wire.bytes(new CompleteTasks(List.of(outcome)));
        boolean refused = false;
        Pause pause = new Pause();
        while (await(FOREVER_MS, () -> session != null || isLost(task)) && !isLost(task)) {
            Session now = session;
            if (now == null) continue;
            boolean again = task.handle.sent;
            task.handle.sent = true;
            Answer answer = request(now, "complete", body, COMPLETE_MS, () -> isLost(task));
            Result result = answer.status() == Status.OK && !answer.results().isEmpty() ? answer.results().get(0)
                : new Result(answer.status() == Status.OK ? Status.UNAVAILABLE : answer.status(), answer.text());
            if (result.status() == Status.INVALID) {
                String text = "the gateway cannot take the outcome of " + task.activity() + " of " + task.instance() + ": " + result.text();
                warn(text + "; it is a failed try");
                if (refused) fail(new TholeException(Status.INVALID, text));
                refused = true;
                body = Wire.bytes(new CompleteTasks(List.of(failure(task, text, "outcome_refused", false))));
            } else if (isSettled(result, answer, again)) remove(task);
            else await(pause.next(), () -> session != now || isLost(task));
        }
    }

    private boolean isSettled(Result result, Answer answer, boolean again) {
        if (answer.status() != Status.OK || answer.results().isEmpty()) return answer.status() == Status.FENCED;
        if (result.status() == Status.UNAVAILABLE || result.status() == Status.TIMEOUT) return false;
        if (result.status() == Status.FENCED && again) warn("an outcome was sent before, and may be stored: its claim is gone");
        else if (result.status() != Status.OK) warn("an outcome was refused: " + result.status() + " " + result.text());
        return true;
    }

    private synchronized void noticeArrived(String at, Notice notice) {
        if (at.equals(inbox)) notice(notice);
    }

    private synchronized void notice(Notice notice) {
        Task task = notice == null ? null : hand.get(notice.claim());
        if (task != null) task.handle.cancel(notice.kind(), notice.reason(), notice.graceMs());
    }

    private boolean isLost(Task task) {
        return hand.get(task.claim()) != task;
    }

    private synchronized void remove(Task task) {
        if (!hand.remove(task.claim(), task)) return;
        done.add(task.claim());
        if (done.size() > DONE_MAX) done.remove(done.iterator().next());
        notifyAll();
    }

    /** They may run elsewhere, or nowhere: their handlers are to end, and how they end is not sent. */
    private synchronized void lose(Collection<String> claims, String kind, String reason) {
        for (String claim : claims) {
            Task task = hand.get(claim);
            if (task == null) continue;
            warn("task " + claim + " is lost: " + reason);
            task.handle.cancel(kind, reason, 0);
            remove(task);
        }
        notifyAll();
    }

    /** What is in hand is lost, and the next session is a new one, which may have claims of the same names. */
    private synchronized void loseAll(String kind, String reason) {
        session = last = null;
        lose(List.copyOf(hand.keySet()), kind, reason);
        done.clear();
    }

    /** Runs its activity. */
    private Outcome outcome(Task task) {
        Activity activity = options.activities.get(task.activity());
        if (activity == null) return failure(task, "this worker has no activity " + task.activity(), "unknown_activity", false);
        task.handle.runsOn(Thread.currentThread());
        try {
            byte[] output = activity.run(task);
            long max = task.handle.payloadMax;
            if (output == null || output.length <= max) return new Outcome(task.claim(), output, null, false, null, false);
            return failure(task, "the output has " + output.length + " bytes; the limit is " + max, "too_large", true);
        } catch (ActivityFailure failure) {
            return failure(task, String.valueOf(failure.getMessage()), failure.type(), failure.isLast());
        } catch (Throwable err) { // whatever it is, it must not end the worker
            if (task.isCancelled()) return told(task, null, true);
            return failure(task, err.getMessage() == null ? err.toString() : err.getMessage(), err.getClass().getSimpleName(), false);
        } finally {
            task.handle.ended();
        }
    }

    private static Outcome failure(Task task, String text, String type, boolean last) {
        String allowed = type.replaceAll("[^A-Za-z0-9_.-]", "_");
        String cut = text.substring(0, Math.min(text.length(), TEXT_MAX)).replace('\0', '\ufffd');
        return told(task, new Failure(cut, allowed.substring(0, Math.min(allowed.length(), 64)), last), false);
    }

    /** With the newest heartbeat, unless it has arrived. */
    private static Outcome told(Task task, Failure failure, boolean cancelled) {
        RunningTask beat = task.handle.running(task.claim(), Long.MAX_VALUE);
        return new Outcome(task.claim(), null, failure, cancelled, beat.details(), beat.heartbeat());
    }

    private void warn(String text) {
        options.warn.accept(text);
    }
}
