package dev.thole.client;

import dev.thole.client.Wire.Answer;
import dev.thole.client.Wire.Notice;
import dev.thole.client.Wire.OpenSession;
import dev.thole.client.Wire.Outcome;
import io.nats.client.Connection;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;

/** Runs activities of one queue, each on a thread of its own. Made by {@link #builder}. */
public final class Worker implements AutoCloseable {
    private static final long OPEN_MS = 5_000;
    private static final System.Logger LOG = System.getLogger(Worker.class.getName());

    private final Builder options;
    private final Link link;
    private final ExecutorService threads;
    private final ScheduledExecutorService timer;
    private final Set<Session> sessions = ConcurrentHashMap.newKeySet();
    private final CompletableFuture<Void> stopping = new CompletableFuture<>();
    private final CountDownLatch ended = new CountDownLatch(1);
    private final AtomicReference<TholeException> error = new AtomicReference<>();
    private final Pause openPause = new Pause();
    private volatile long limitMs;
    private boolean started;
    private int busy; // slots taken: until an outcome is answered, and by a handler whose task is lost until it ends

    private Worker(Builder options) {
        this.options = options;
        this.limitMs = options.stopLimit.toMillis();
        this.link = new Link(options.nats);
        ThreadFactory daemons = run -> {
            Thread thread = new Thread(run, "thole-" + options.queue);
            thread.setDaemon(true);
            return thread;
        };
        this.threads = Executors.newCachedThreadPool(daemons);
        this.timer = Executors.newSingleThreadScheduledExecutor(daemons);
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
        synchronized (this) {
            if (started) throw new IllegalStateException("a worker runs once");
            started = true;
        }
        link.closed().thenRun(() -> fatal(new TholeException(Status.UNAVAILABLE, "the NATS connection is closed")));
        try {
            while (!stopping.isDone()) {
                Session session = open();
                if (session != null) feed(session);
                sessions.removeIf(Session::isOver);
                Pause.sleep(openPause.next() - Pause.FIRST_MS, stopping); // at once, unless sessions end before they were of use
            }
            closeAll();
        } finally {
            sessions.forEach(session -> session.end("shutdown", "the worker ends"));
            link.close();
            timer.shutdownNow();
            threads.shutdown(); // handlers of given up tasks may still run
            ended.countDown();
        }
        if (error.get() != null) throw error.get();
    }

    /** Takes no new tasks, lets running ones end for up to the limit, and then tells them to. {@link #run} returns then. */
    public void stop(Duration limit) {
        limitMs = limit.toMillis();
        stop();
    }

    public void stop() {
        stopping.complete(null);
    }

    /** Stops, and waits until {@link #run} has returned. */
    @Override
    public void close() throws InterruptedException {
        stop();
        boolean runs;
        synchronized (this) {
            runs = started;
            started = true;
        }
        if (runs) {
            ended.await();
        } else {
            link.close();
        }
    }

    private void closeAll() throws InterruptedException {
        List<Future<?>> closes = sessions.stream().<Future<?>>map(session -> threads.submit(() -> {
            session.close(limitMs);
            return null;
        })).toList();
        for (Future<?> one : closes) {
            try {
                one.get();
            } catch (ExecutionException err) {
                warn("close: " + err.getCause());
            }
        }
    }

    private Session open() throws InterruptedException {
        while (!stopping.isDone()) {
            AtomicReference<Session> made = new AtomicReference<>();
            String inbox = link.newInbox(message -> {
                Session session = made.get();
                if (session != null) session.notice(Link.parsed(message.getData(), Notice.class));
            });
            long sentAt = System.nanoTime();
            OpenSession body = new OpenSession(options.name, options.slots, List.copyOf(options.activities.keySet()), inbox);
            String subject = "thole." + options.namespace + ".gateway.open." + options.queue;
            Answer answer = link.request(subject, body, OPEN_MS, link.closed(), Link.NO_HEADERS);
            if (answer.status == Status.OK && !answer.subject.isEmpty()) {
                Session session = new Session(this, link, answer, inbox, sentAt);
                made.set(session);
                sessions.add(session);
                session.begin();
                return session;
            }
            link.forget(inbox);
            if (answer.status == Status.INVALID || answer.status == Status.DENIED)
                fatal(new TholeException(answer.status, "open: " + answer.text));
            Pause.sleep(openPause.next(), stopping);
        }
        return null;
    }

    /** Asks for tasks until the session takes none any more. */
    private void feed(Session session) throws InterruptedException {
        Pause pause = new Pause();
        while (!stopping.isDone() && !session.takesNoMore()) {
            int free = freeSlots(session);
            if (free == 0) continue;
            if (!link.isConnected()) {
                Pause.sleep(50, stopping);
                continue;
            }
            CompletableFuture<Integer> asked = session.next(free, options.wait.toMillis());
            try {
                CompletableFuture.anyOf(asked, session.over, stopping).get();
            } catch (ExecutionException err) {
                warn("next: " + err.getCause());
            }
            // When the worker stops, what still comes is taken all the same.
            int status = asked.isCompletedExceptionally() ? Status.NO_ANSWER : asked.getNow(Status.NO_ANSWER);
            if (status == Status.OK) {
                pause.reset();
                openPause.reset();
            } else if (status == Status.UNAVAILABLE) {
                session.retire();
            } else if (!session.isOver()) {
                Pause.sleep(pause.next(), stopping);
            }
        }
    }

    /** Waits until a slot is free; 0: the session takes no more, or the worker stops. */
    private synchronized int freeSlots(Session session) throws InterruptedException {
        while (busy >= options.slots && !session.isOver() && !stopping.isDone()) wait(100);
        return Math.max(0, options.slots - busy);
    }

    // ---- told by sessions ----

    synchronized void changed() {
        notifyAll();
    }

    private synchronized void count(int more) {
        busy += more;
        notifyAll();
    }

    void take(Session session, Task task) {
        count(1);
        threads.execute(() -> {
            try {
                session.complete(task, outcome(task));
            } catch (InterruptedException err) {
                task.lose("shutdown", "the worker ends");
            } finally {
                count(-1);
            }
        });
    }

    private Outcome outcome(Task task) {
        Activity activity = options.activities.get(task.activity());
        if (activity == null)
            return Session.failure(task.claim, "this worker has no activity " + task.activity(), "unknown_activity", false);
        task.runsOn(Thread.currentThread());
        try {
            byte[] output = activity.run(task);
            return new Outcome(task.claim, output == null ? new byte[0] : output, null, null);
        } catch (ActivityFailure failure) {
            return Session.failure(task.claim, String.valueOf(failure.getMessage()), failure.type(), failure.isLast());
        } catch (Throwable err) { // whatever it is, it must not end the worker
            if (task.isCancelled()) return new Outcome(task.claim, null, null, true);
            return Session.failure(task.claim, err.getMessage() == null ? err.toString() : err.getMessage(), err.getClass().getSimpleName(), false);
        } finally {
            task.ended();
        }
    }

    Executor executor() {
        return threads;
    }

    Future<?> later(Runnable run, long delayMs) {
        try {
            return timer.schedule(run, delayMs, TimeUnit.MILLISECONDS);
        } catch (RejectedExecutionException err) {
            return CompletableFuture.completedFuture(null); // the worker has ended
        }
    }

    /** The worker cannot go on. */
    void fatal(TholeException err) {
        error.compareAndSet(null, err);
        sessions.forEach(session -> session.end("shutdown", String.valueOf(err.getMessage())));
        stopping.complete(null);
    }

    void warn(String text) {
        options.warn.accept(text);
    }
}
