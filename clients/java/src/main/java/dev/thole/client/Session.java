package dev.thole.client;

import dev.thole.client.Wire.Answer;
import dev.thole.client.Wire.CloseSession;
import dev.thole.client.Wire.CompleteTasks;
import dev.thole.client.Wire.Failure;
import dev.thole.client.Wire.NextTasks;
import dev.thole.client.Wire.Notice;
import dev.thole.client.Wire.Outcome;
import dev.thole.client.Wire.RenewTasks;
import dev.thole.client.Wire.Result;
import dev.thole.client.Wire.RunningTask;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** One session with a gateway: renews what is in hand until it is closed, lost, or forgotten by the gateway. */
final class Session {
    private static final long COMPLETE_MS = 10_000;
    private static final long CLOSE_MORE_MS = 10_000;
    private static final long NEXT_MORE_MS = 5_000;
    private static final int DONE_MAX = 10_000; // claims that are remembered so that a task which comes again is known
    private static final int TEXT_MAX = 4096;

    /** Done when nothing is sent any more. */
    final CompletableFuture<Void> over = new CompletableFuture<>();

    private final Worker owner;
    private final Link link;
    private final Answer opened;
    private final String inbox;
    private final Pause renewPause = new Pause();
    private final Map<String, Task> hand = new HashMap<>();
    private final Set<String> done = new LinkedHashSet<>();
    private Future<?> renewal;
    private Future<?> leaseWatch;
    private long renewals;
    private long renewedAt; // System.nanoTime
    private boolean unknown; // the gateway's last answer was that it does not know the session
    private boolean retired; // takes no new tasks
    private boolean closing;

    /** @param sentAt when the open was sent: the lease counts from then. */
    Session(Worker owner, Link link, Answer opened, String inbox, long sentAt) {
        this.owner = owner;
        this.link = link;
        this.opened = opened;
        this.inbox = inbox;
        this.renewedAt = sentAt;
    }

    synchronized void begin() {
        renewal = owner.later(this::renew, opened.renewMs);
        watchLease();
    }

    boolean isOver() {
        return over.isDone();
    }

    synchronized boolean takesNoMore() {
        return isOver() || retired;
    }

    private long payloadMax() {
        return opened.payloadMax <= 0 ? Long.MAX_VALUE : opened.payloadMax;
    }

    private Answer judged(String operation, Answer answer) {
        switch (answer.status) {
            case Status.OK -> know(true);
            case Status.NOT_FOUND, Status.NO_RESPONDERS -> know(false);
            case Status.INVALID, Status.DENIED -> owner.fatal(new TholeException(answer.status, operation + ": " + answer.text));
            default -> {}
        }
        return answer;
    }

    private synchronized void know(boolean known) {
        unknown = !known;
        endIfForgotten();
    }

    private Answer request(String operation, Object body, long timeoutMs, CompletableFuture<?> end) throws InterruptedException {
        lookAtLease();
        if (end.isDone()) return Answer.none(Status.NO_ANSWER, "the session is over");
        Answer answer = link.request(opened.subject + "." + operation, body, timeoutMs, end, Link.NO_HEADERS);
        return isOver() ? answer : judged(operation, answer);
    }

    /** Asks for tasks and takes them. The future has the status. */
    CompletableFuture<Integer> next(int max, long waitMs) {
        lookAtLease();
        return link.ask(opened.subject + ".next", new NextTasks(max, waitMs), waitMs + NEXT_MORE_MS, Link.NO_HEADERS).thenApply(answer -> {
            if (isOver()) return answer.status;
            if (judged("next", answer).status == Status.OK) answer.tasks.stream().filter(Objects::nonNull).forEach(this::take);
            return answer.status;
        });
    }

    private synchronized void take(Task task) {
        if (isOver() || task.claim.isEmpty() || hand.containsKey(task.claim) || done.contains(task.claim)) return;
        task.begin(Math.min(payloadMax(), link.maxPayload() / 2), owner.executor());
        hand.put(task.claim, task);
        owner.take(this, task);
    }

    // ---- lease ----

    private synchronized void renew() {
        if (isOver()) return;
        long sent = ++renewals;
        renewal = owner.later(this::renew, opened.renewMs);
        if (!link.isConnected() || closing && hand.isEmpty()) return;
        List<RunningTask> running = new ArrayList<>();
        long room = link.maxPayload() / 16 * 9; // in base64 three quarters of what fits
        for (Task task : hand.values()) {
            RunningTask message = task.running(room);
            room -= message.details() == null ? 0 : message.details().length;
            running.add(message);
        }
        long sentAt = System.nanoTime();
        // Others go out before this one is answered or given up: a slow answer counts, a lost one costs no lease.
        link.ask(opened.subject + ".renew", new RenewTasks(running), opened.leaseMs, Link.NO_HEADERS).thenAccept(answer -> {
            if (isOver()) return;
            if (judged("renew", answer).status == Status.OK) renewed(answer, sentAt, running);
            else renewSoon(sent);
        });
    }

    private synchronized void renewed(Answer answer, long sentAt, List<RunningTask> running) {
        if (isOver()) return;
        renewPause.reset();
        if (sentAt - renewedAt > 0) renewedAt = sentAt;
        watchLease();
        for (RunningTask sent : running) {
            Task task = hand.get(sent.claim());
            if (task != null && sent.details() != null) task.arrived(sent.details());
        }
        answer.cancelled.forEach(this::notice);
        for (String claim : answer.gone) {
            Task task = hand.get(claim);
            if (task == null) continue;
            task.lose("lease_lost", "the claim is gone");
            drop(task);
        }
    }

    private synchronized void renewSoon(long sent) {
        if (isOver() || sent != renewals) return;
        renewal.cancel(false);
        renewal = owner.later(this::renew, Math.min(renewPause.next(), Math.max(opened.renewMs, Pause.FIRST_MS)));
    }

    private void watchLease() {
        if (leaseWatch != null) leaseWatch.cancel(false);
        leaseWatch = owner.later(this::lookAtLease, Math.max(0, leaseLeftMs() + 1));
    }

    private long leaseLeftMs() {
        return opened.leaseMs - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - renewedAt);
    }

    private synchronized void lookAtLease() {
        if (isOver() || leaseLeftMs() > 0) return;
        owner.warn("no renewal was answered for " + opened.leaseMs + " ms: " + hand.size() + " tasks are lost");
        end("lease_lost", "no renewal was answered for a lease");
    }

    synchronized void notice(Notice notice) {
        Task task = notice == null ? null : hand.get(notice.claim);
        if (task != null) task.cancel(notice.kind, notice.reason, notice.graceMs);
    }

    // ---- the end of a task ----

    /** Sends an outcome until it is answered, or the task is lost. */
    void complete(Task task, Outcome outcome) throws InterruptedException {
        CompleteTasks body = new CompleteTasks(List.of(fitting(outcome)));
        Pause pause = new Pause();
        while (!task.lost.isDone()) {
            if (isSettled(request("complete", body, COMPLETE_MS, task.lost))) {
                drop(task);
                return;
            }
            Pause.sleep(pause.next(), task.lost);
        }
    }

    private boolean isSettled(Answer answer) {
        if (answer.status != Status.OK) return answer.status == Status.FENCED;
        Result result = answer.results.isEmpty() ? null : answer.results.get(0);
        if (result == null || result.status == Status.UNAVAILABLE || result.status == Status.TIMEOUT) return false;
        if (result.status != Status.OK && result.status != Status.FENCED)
            owner.warn("an outcome was refused: " + result.status + " " + result.text);
        return true;
    }

    private Outcome fitting(Outcome outcome) {
        long max = Math.min(payloadMax(), Math.max(0, link.maxPayload() - 1024) / 4 * 3);
        if (outcome.output() == null || outcome.output().length <= max) return outcome;
        return failure(outcome.claim(), "the output has " + outcome.output().length + " bytes; the limit is " + max, "too_large", true);
    }

    static Outcome failure(String claim, String text, String type, boolean last) {
        String allowed = type.replaceAll("[^A-Za-z0-9_.-]", "_");
        String cut = text.substring(0, Math.min(text.length(), TEXT_MAX));
        return new Outcome(claim, null, new Failure(cut, allowed.substring(0, Math.min(allowed.length(), 64)), last), null);
    }

    private synchronized void drop(Task task) {
        if (hand.remove(task.claim) == null) return;
        done.add(task.claim);
        if (done.size() > DONE_MAX) done.remove(done.iterator().next());
        endIfForgotten();
        owner.changed();
        if (retired) retire();
    }

    // ---- the end of the session ----

    /** Takes no new tasks, and closes when nothing is in hand. */
    synchronized void retire() {
        retired = true;
        if (!hand.isEmpty() || closing || isOver()) return;
        owner.executor().execute(() -> {
            try {
                close(0);
            } catch (InterruptedException err) {
                end("shutdown", "the worker was interrupted");
            }
        });
    }

    /** Closes it: what runs after the limit is told to end. Returns when nothing is task. */
    void close(long limitMs) throws InterruptedException {
        boolean first;
        synchronized (this) {
            first = !closing;
            retired = true;
            closing = true;
        }
        if (!first) {
            Pause.sleep(limitMs + CLOSE_MORE_MS, over);
            return;
        }
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
        Pause pause = new Pause();
        while (!isOver()) {
            long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime() + 999_999);
            if (leftMs < -CLOSE_MORE_MS - graceMs()) break;
            long limit = Math.max(0, leftMs);
            if (request("close", new CloseSession(limit), limit + CLOSE_MORE_MS, over).status == Status.OK) break;
            Pause.sleep(pause.next(), over);
        }
        end("shutdown", "the session was closed");
    }

    /** What a close is tried longer for while something is in hand. */
    private synchronized long graceMs() {
        return hand.isEmpty() ? 0 : opened.graceMs;
    }

    private void endIfForgotten() {
        if (unknown && hand.isEmpty()) end("lease_lost", "the gateway does not know the session");
    }

    /** Sends nothing any more, whatever is still in hand. */
    synchronized void end(String kind, String reason) {
        if (!over.complete(null)) return;
        if (renewal != null) renewal.cancel(false);
        if (leaseWatch != null) leaseWatch.cancel(false);
        link.forget(inbox);
        hand.values().forEach(task -> task.lose(kind, reason));
        hand.clear();
        owner.changed();
    }
}
