package dev.thole.client;

import java.util.List;

/**
 * What is known of an instance. Times are milliseconds since 1970.
 *
 * @param version 0: not chosen yet.
 * @param state pending, running, waiting, stuck, paused, completed, failed, cancelled, terminated.
 * @param reason why it does not go on: no_code, divergence, paused, and others.
 * @param detail the same for people; of a failure the head of its text.
 * @param hindrances of {@link Client#describe}: what keeps it from going on; none: it goes on, waits for time or an event, or has ended.
 */
public record Instance(String instance, String orchestration, int version, long execution, String state, String reason, String detail,
    String customStatus, String parent, long createdMs, long updatedMs, long turns, long openActivities, long openTimers,
    List<Hindrance> hindrances) {

    /**
     * What keeps an instance from going on, until somebody does something.
     *
     * @param kind a reason; or no_engine, not_taken, no_worker, unknown_activity, quarantined, child.
     * @param nextStep what would let it go on.
     */
    public record Hindrance(String kind, String text, String nextStep) {}

    /**
     * Which instances; what is empty, 0 or null selects all.
     *
     * @param states as in {@link Instance}.
     * @param createdAfterMs inclusive.
     * @param limit at most 1000; 0: 100. There may be fewer, although there are more.
     * @param behindInstance the next page: the last one of the page before.
     */
    public record Filter(List<String> states, String orchestration, String idPrefix, String parent, String customStatus, long createdAfterMs,
        long createdBeforeMs, int limit, String behindInstance, long behindCreatedMs) {

        /** All of these states, from the newest on. */
        public Filter(List<String> states) {
            this(states, null, null, null, null, 0, 0, 0, null, 0);
        }

        /** The page behind its last one. */
        public Filter behind(Instance last) {
            return new Filter(states, orchestration, idPrefix, parent, customStatus, createdAfterMs, createdBeforeMs, limit, last.instance,
                last.createdMs);
        }
    }
}
