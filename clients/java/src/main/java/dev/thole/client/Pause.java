package dev.thole.client;

import java.util.concurrent.ThreadLocalRandom;

/** Pauses between tries: 200 ms, doubled up to 5 s, and up to a quarter more so that workers do not ask in step. */
final class Pause {
    static final long FIRST_MS = 200;
    private static final long MAX_MS = 5_000;
    private long ms;

    synchronized void reset() {
        ms = 0;
    }

    synchronized long next() {
        ms = Math.min(Math.max(ms * 2, FIRST_MS), MAX_MS);
        return ms + ThreadLocalRandom.current().nextLong(ms / 4 + 1);
    }
}
