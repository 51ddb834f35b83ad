/* Carries out the outputs of a partition's machine, or makes requests of them. Never answers at once: answers
 * are mails. */
#include "shard_parts.h"
#include <assert.h>

enum { REOPEN_FIRST_MS = 20 };

static void on_closed(struct shard *shard, struct owned *owned, const struct out_closed *out)
{
    log_line_of(out->reopen ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "partition", LOG_PARTITION(owned->p),
                "closed: %s (epoch %llu, %llu records committed)", out->text, (unsigned long long)out->epoch,
                (unsigned long long)out->records);
    owned->close_by_ms = 0;
    queries_close(shard, owned);
    inbox_close(shard, owned);
    assert(owned->reader == NULL && owned->queries == NULL && owned->asked == NULL);
    uint64_t const pause = (uint64_t)REOPEN_FIRST_MS << (owned->failures < 8 ? owned->failures : 8);
    uint64_t const now = clock_monotonic_ms();
    uint64_t const until =
        now + (pause < RETRY_MS_MAX ? pause : RETRY_MS_MAX) + (now ^ owned->p) % REOPEN_FIRST_MS;
    if (until > owned->not_before_ms)
        owned->not_before_ms = until;
    owned->failures++;
    shard_count_closed(shard, owned, out->reopen);
}

static void on_opened(struct shard *shard, struct owned *owned, const struct out_opened *out)
{
    shard_count_opened(shard, owned);
    queries_open(shard, owned);
    sweeper_opened(owned);
    log_line_of(LOG_LEVEL_INFO, "partition", LOG_PARTITION(owned->p), "open, epoch %llu",
                (unsigned long long)out->epoch);
}

void shard_do(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: on_closed(shard, owned, &out->closed); break;
    case PARTITION_OUT_OPENED: on_opened(shard, owned, &out->opened); break;
    case PARTITION_OUT_READ_TAIL: log_read_tail(shard, owned, out); break;
    case PARTITION_OUT_DELETE_RECORDS: log_delete(shard, owned, out); break;
    case PARTITION_OUT_APPEND: log_append(shard, owned, out); break;
    case PARTITION_OUT_READ_LOG: log_read(shard, owned, out); break;
    case PARTITION_OUT_READ_RESULTS: inbox_read_results(shard, owned, out); break;
    case PARTITION_OUT_REMOVE_HISTORY: history_remove(shard, owned, out); break;
    case PARTITION_OUT_LOAD: history_load(shard, owned, out); break;
    case PARTITION_OUT_READ_IDS: ids_read(shard, owned, out); break;
    case PARTITION_OUT_STORE_OPEN: store_ask(shard, owned, out, REQ_STORE_OPEN); break;
    case PARTITION_OUT_STORE_RESET: store_ask(shard, owned, out, REQ_STORE_RESET); break;
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
    case PARTITION_OUT_READ_CRASHES: crashes_list(shard, owned, out); break;
    case PARTITION_OUT_CRASHED:
        metric_add(shard->cells, METRIC_ENGINE_CRASHES, 0, 1);
        crash_put(shard, owned, out);
        break;
    case PARTITION_OUT_CRASHES_OVER: crashes_forget(shard, owned, out); break;
    case PARTITION_OUT_QUERY_ANSWER: query_answer(shard, owned, out); break;
    }
}
