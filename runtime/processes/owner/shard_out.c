/* Carries out the outputs of a partition's machine, or makes requests of them. Never answers at once: answers
 * are mails. */
#include "lookout.h"
#include "shard_parts.h"
#include <assert.h>

enum {
    REOPEN_FIRST_MS = 20,
    WORKED_MS = 10000, /* open for so long, it has worked, as when it has committed a record */
    SAID_EACH = 4,     /* so many failures one after the other have a line each */
    SAY_AGAIN_MS = 30000,
};

/* While nothing mends what fails, it opens and closes again and again, perhaps each time for a moment. What
 * has no cause of its own may be something else each time. */
static bool shard_out_was_reported(const struct owned *owned, uint64_t now_ms)
{
    return owned->failures >= SAID_EACH && owned->cause != CLOSED_OTHER &&
           owned->cause == owned->said_cause && now_ms - owned->said_ms < SAY_AGAIN_MS;
}

static void say_closed(struct owned *owned, const struct out_closed *out, uint64_t now_ms)
{
    enum log_level level = LOG_LEVEL_INFO;
    if (out->reopen && shard_out_was_reported(owned, now_ms)) {
        level = LOG_LEVEL_DEBUG;
    } else if (out->reopen) {
        level = LOG_LEVEL_WARN;
        owned->said_ms = now_ms;
        owned->said_cause = owned->cause;
    }
    log_line_of(level, "partition", LOG_PARTITION(owned->p),
                "closed: %s (epoch %llu, %llu records committed)", out->text, (unsigned long long)out->epoch,
                (unsigned long long)out->records);
}

/* The pause doubles with each failure; to be handed over is none. Those that happen together do not open
 * together. */
static void pause_before_open(struct owned *owned, bool failed, uint64_t now_ms)
{
    uint64_t const pause = (uint64_t)REOPEN_FIRST_MS << (owned->failures < 8 ? owned->failures : 8);
    uint64_t const until =
        now_ms + (pause < RETRY_MS_MAX ? pause : RETRY_MS_MAX) + (now_ms ^ owned->p) % REOPEN_FIRST_MS;
    if (until > owned->not_before_ms)
        owned->not_before_ms = until;
    owned->failures += failed;
}

static void shard_out_on_closed(struct shard *shard, struct owned *owned, const struct out_closed *out)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (out->records > 0 || (owned->opened_ms != 0 && now_ms - owned->opened_ms >= WORKED_MS))
        owned->failures = 0;
    owned->opened_ms = 0;
    say_closed(owned, out, now_ms);
    owned->close_by_ms = 0;
    queries_close(shard, owned);
    inbox_close(shard, owned);
    assert(owned->reader == NULL && owned->queries == NULL && owned->asked == NULL);
    if (out->reopen) {
        partition_states_closed(shard->engine->states, owned->p, owned->cause, out->text);
        lookout_hurry(shard->engine->lookout);
    }
    pause_before_open(owned, out->reopen, now_ms);
    shard_count_closed(shard, owned, out->reopen);
}

static void on_opened(struct shard *shard, struct owned *owned, const struct out_opened *out)
{
    owned->opened_ms = clock_monotonic_ms();
    shard_count_opened(shard, owned);
    queries_open(shard, owned);
    sweeper_opened(owned);
    log_keep_begin(owned);
    log_line_of(LOG_LEVEL_INFO, "partition", LOG_PARTITION(owned->p), "open, epoch %llu",
                (unsigned long long)out->epoch);
}

static void rows_reset(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    static const char *const faults[] = {
        [ROWS_FAULT_OTHER_LOG] =
            "of another log, or of a time of which the log has no deletions any more: they are removed, and "
            "made again from the histories",
        [ROWS_FAULT_OTHER_KEY] = "signed with another key of nonces than the namespace has: they are made "
                                 "again, and activities that "
                                 "workers have begun are run again"};
    log_line_of(LOG_LEVEL_WARN, "partition", LOG_PARTITION(owned->p), "the rows in Postgres are %s",
                faults[out->store_reset.fault]);
    store_ask(shard, owned, out, REQ_STORE_RESET);
}

void shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: shard_out_on_closed(shard, owned, &out->closed); break;
    case PARTITION_OUT_OPENED: on_opened(shard, owned, &out->opened); break;
    case PARTITION_OUT_READ_TAIL: log_read_tail(shard, owned, out); break;
    case PARTITION_OUT_DELETE_RECORDS: log_delete(shard, owned, out); break;
    case PARTITION_OUT_APPEND: log_append(shard, owned, out); break;
    case PARTITION_OUT_READ_LOG: log_read(shard, owned, out); break;
    case PARTITION_OUT_READ_RESULTS: inbox_read_results(shard, owned, out); break;
    case PARTITION_OUT_REMOVE_HISTORY: history_remove(shard, owned, out); break;
    case PARTITION_OUT_FIND_DISPENSABLE: dispensable_find(shard, owned, out); break;
    case PARTITION_OUT_REMOVE_RECORDS: dispensable_remove(shard, owned, out); break;
    case PARTITION_OUT_LOAD: history_load(shard, owned, out); break;
    case PARTITION_OUT_READ_IDS: ids_read(shard, owned, out); break;
    case PARTITION_OUT_STORE_OPEN: store_ask(shard, owned, out, REQ_STORE_OPEN); break;
    case PARTITION_OUT_STORE_RESET: rows_reset(shard, owned, out); break;
    case PARTITION_OUT_READ_LIVE: store_ask(shard, owned, out, REQ_STORE_LIVE); break;
    case PARTITION_OUT_READ_TIMERS: store_ask(shard, owned, out, REQ_STORE_TIMERS); break;
    case PARTITION_OUT_APPLY: store_ask(shard, owned, out, REQ_STORE_APPLY); break;
    case PARTITION_OUT_PUBLISH_WORK: work_queue(shard, owned, out); break;
    case PARTITION_OUT_PUSH_CANCEL: notice_cancel(shard, &out->push_cancel); break;
    case PARTITION_OUT_WITHDRAW: work_withdraw(shard, owned, out); break;
    case PARTITION_OUT_NOTICE: notice_event(shard, &out->notice); break;
    case PARTITION_OUT_READ_INBOX: inbox_read(shard, owned, out); break;
    case PARTITION_OUT_PURGE_INBOX: inbox_purge(shard, owned, out); break;
    case PARTITION_OUT_REJECT: shard_reject(shard, owned, out); break;
    case PARTITION_OUT_SEND: message_send_to(shard, owned, out); break;
    case PARTITION_OUT_EMIT: event_emit(shard, owned, out); break;
    case PARTITION_OUT_LINE: code_log(owned->p, &out->line); break;
    case PARTITION_OUT_STOPPED: stop_log(shard, owned->p, &out->stopped); break;
    case PARTITION_OUT_LIMITED: limit_log(shard, owned->p, &out->limited); break;
    case PARTITION_OUT_READ_CRASHES: crashes_list(shard, owned, out); break;
    case PARTITION_OUT_CRASHED:
        metric_add(shard->cells, METRIC_ENGINE_CRASHES, 0, 1);
        crash_put(shard, owned, out);
        break;
    case PARTITION_OUT_CRASHES_OVER: crashes_forget(shard, owned, out); break;
    case PARTITION_OUT_QUERY_ANSWER: query_answer(shard, owned, out); break;
    }
}
