package dev.thole.client;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Pauses between tries: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step. */
final class Pause {
    static final long FIRST_MS = 200;
    private static final long MAX_MS = 5_000;
    private long ms;

    void reset() {
        ms = 0;
    }

    long next() {
        ms = Math.min(Math.max(ms * 2, FIRST_MS), MAX_MS);
        return ms + ThreadLocalRandom.current().nextLong(ms / 4 + 1);
    }

    /** Sleeps, or until the future is done. */
    static void sleep(long sleepMs, CompletableFuture<?> end) throws InterruptedException {
        try {
            end.get(Math.max(0, sleepMs), TimeUnit.MILLISECONDS);
        } catch (TimeoutException | ExecutionException ended) {
            // nothing to do: the time is over, or it was the end
        }
    }
}
