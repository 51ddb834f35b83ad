/* The outputs of the partition and of the worker, field by field. */
#include "told.h"
#include <inttypes.h>

static void text_of(struct told *told, const char *name, const char *text)
{
    told_bytes(told, name, thole_slice_from(text == NULL ? "" : text));
}

/* ---- rows ---- */

static void told_activities(struct told *told, const char *what, const struct batch_activity *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        told_line(told, what);
        told_bytes(told, "instance", rows[i].instance);
        told_number(told, "execution", rows[i].execution);
        told_number(told, "activity_id", rows[i].activity_id);
        told_bytes(told, "queue", rows[i].queue);
        told_bytes(told, "activity", rows[i].activity);
        told_number(told, "try", rows[i].try_number);
        told_number(told, "try_timeout_ms", rows[i].try_timeout_ms);
        told_bytes(told, "details", rows[i].details);
    }
}

static void told_timers(struct told *told, const char *what, const struct batch_timer *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        told_line(told, what);
        told_bytes(told, "instance", rows[i].instance);
        told_number(told, "execution", rows[i].execution);
        told_number(told, "timer_id", rows[i].timer_id);
        told_number(told, "due_ms", rows[i].due_ms);
    }
}

static void told_quarantines(struct told *told, const char *what, const struct batch_quarantine *rows,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        told_line(told, what);
        told_bytes(told, "instance", rows[i].instance);
        told_number(told, "execution", rows[i].execution);
        told_number(told, "activity_id", rows[i].activity_id);
        told_bytes(told, "queue", rows[i].queue);
        told_bytes(told, "activity", rows[i].activity);
        told_number(told, "try", rows[i].try_number);
        told_number(told, "lost", rows[i].lost);
        told_bytes(told, "worker", rows[i].worker);
        told_bytes(told, "reason", rows[i].reason);
        told_number(told, "since_ms", rows[i].since_ms);
        told_number(told, "until_ms", rows[i].until_ms);
    }
}

static void told_instances(struct told *told, const struct batch_instance *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        told_line(told, "  row of the instance");
        told_bytes(told, "instance", rows[i].instance);
        told_bytes(told, "orchestration", rows[i].orchestration);
        told_number(told, "version", rows[i].version);
        told_number(told, "execution", rows[i].execution);
        told_number(told, "status", rows[i].status);
        told_number(told, "created_ms", rows[i].created_ms);
        told_number(told, "updated_ms", rows[i].updated_ms);
        told_bytes(told, "detail", rows[i].detail);
        told_number(told, "turns", rows[i].turns);
        told_number(told, "history_seq", rows[i].history_seq);
        told_number(told, "custom_status_set", rows[i].custom_status_set);
        told_bytes(told, "custom_status", rows[i].custom_status);
        told_bytes(told, "parent", rows[i].parent);
        told_number(told, "removed", rows[i].removed);
    }
}

static void told_deletions(struct told *told, const struct batch_deletion *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        told_line(told, "  deletion");
        told_bytes(told, "instance", rows[i].instance);
        told_number(told, "execution", rows[i].execution);
        told_number(told, "above", rows[i].pruned.above);
        told_number(told, "upto", rows[i].pruned.upto);
        told_number(told, "history_seq", rows[i].history_seq);
    }
}

static void told_batch(struct told *told, const struct batch *batch)
{
    told_number(told, "partition", batch->partition);
    told_number(told, "epoch", batch->epoch);
    told_number(told, "projected", batch->projected.seq);
    told_number(told, "mark", batch->projected.mark);
    told_number(told, "durable", batch->durable);
    told_deletions(told, batch->deletions, batch->deletions_len);
    told_activities(told, "  activity", batch->activities_added, batch->activities_added_len);
    told_activities(told, "  activity gone", batch->activities_removed, batch->activities_removed_len);
    told_timers(told, "  timer", batch->timers_added, batch->timers_added_len);
    told_timers(told, "  timer gone", batch->timers_removed, batch->timers_removed_len);
    told_quarantines(told, "  quarantine", batch->quarantine_added, batch->quarantine_added_len);
    told_quarantines(told, "  quarantine gone", batch->quarantine_removed, batch->quarantine_removed_len);
    told_instances(told, batch->instances, batch->instances_len);
}

/* ---- outputs of the partition ---- */

static void told_seen(struct told *told, const struct seen *seen)
{
    told_number(told, "seen", seen->sequence);
    told_number(told, "seen_ns", seen->stored_ns);
}

static void told_cancel(struct told *told, const struct cancel_notice *out)
{
    told_bytes(told, "instance", out->instance);
    told_number(told, "execution", out->execution);
    for (size_t i = 0; i < out->activity_ids_len; i++)
        told_number(told, "activity_id", out->activity_ids[i]);
    told_number(told, "try", out->try_number);
    told_number(told, "early", out->early);
    told_number(told, "repeats", out->repeats);
    told_bytes(told, "kind", out->kind);
    told_bytes(told, "reason", out->reason);
}

static void told_notice(struct told *told, const struct event_notice *out)
{
    text_of(told, "kind", out->kind);
    told_bytes(told, "orchestration", out->orchestration);
    told_bytes(told, "instance", out->instance);
    told_bytes(told, "request_id", out->request_id);
    told_bytes(told, "data", out->data);
    told_number(told, "execution", out->execution);
}

static void told_work(struct told *told, const struct out_publish_work *out)
{
    told_bytes(told, "instance", out->instance);
    told_bytes(told, "queue", out->queue);
    told_bytes(told, "activity", out->activity);
    told_bytes(told, "input", out->input);
    told_number(told, "execution", out->execution);
    told_number(told, "activity_id", out->activity_id);
    told_number(told, "try", out->try_number);
    told_number(told, "again", out->again);
}

static void told_reject(struct told *told, const struct out_reject *out)
{
    told_number(told, "sequence", out->sequence);
    told_number(told, "stored_ns", out->stored_ns);
    told_number(told, "code", out->code);
    text_of(told, "text", out->text);
    told_bytes(told, "route", out->route);
    told_bytes(told, "instance", out->instance);
    told_bytes(told, "subject", out->subject);
    told_bytes(told, "bytes", out->bytes);
    told_number(told, "message_bytes", out->message_bytes);
}

static void told_crashed(struct told *told, const struct out_crashed *out)
{
    told_bytes(told, "instance", out->instance);
    told_bytes(told, "orchestration", out->orchestration);
    told_bytes(told, "text", out->text);
    told_number(told, "count", out->count);
    told_number(told, "execution", out->execution);
    told_number(told, "version", out->version);
}

static void told_append(struct told *told, const struct out_append *out)
{
    told_number(told, "kind", out->kind);
    told_bytes(told, "instance", out->instance);
    told_number(told, "execution", out->execution);
    told_number(told, "expected_last", out->expected_last);
    told_bytes(told, "bytes", out->bytes);
}

static void told_delete_records(struct told *told, const struct out_delete_records *out)
{
    for (size_t i = 0; i < out->sequences_len; i++)
        told_number(told, "sequence", out->sequences[i]);
    told_number(told, "expected_last", out->expected_last);
}

static void told_closed(struct told *told, const struct out_closed *out)
{
    text_of(told, "text", out->text);
    told_number(told, "reopen", out->reopen);
    told_number(told, "epoch", out->epoch);
    told_number(told, "records", out->records);
}

static void told_remove(struct told *told, const struct out_remove_history *out)
{
    told_bytes(told, "instance", out->instance);
    told_number(told, "above", out->executions.above);
    told_number(told, "upto", out->executions.upto);
    told_number(told, "below", out->below);
}

static void told_remove_records(struct told *told, const struct out_remove_records *out)
{
    for (size_t i = 0; i < out->len; i++)
        told_number(told, "sequence", out->sequences[i]);
}

static void told_emission(struct told *told, const struct emission *emission)
{
    told_bytes(told, "instance", emission->instance);
    told_bytes(told, "orchestration", emission->orchestration);
    told_bytes(told, "type", emission->type);
    told_bytes(told, "data", emission->data);
    told_bytes(told, "error_type", emission->error_type);
    told_number(told, "execution", emission->execution);
    told_number(told, "event", emission->event);
    told_number(told, "time_ms", emission->time_ms);
    told_number(told, "is_text", emission->is_text);
}

/* Outputs to clients and people. */
static void told_words(struct told *told, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_NOTICE: told_notice(told, &out->notice); break;
    case PARTITION_OUT_EMIT: told_emission(told, &out->emit); break;
    case PARTITION_OUT_PUSH_CANCEL: told_cancel(told, &out->push_cancel); break;
    case PARTITION_OUT_REJECT: told_reject(told, &out->reject); break;
    case PARTITION_OUT_CRASHED: told_crashed(told, &out->crashed); break;
    case PARTITION_OUT_CRASHES_OVER: told_bytes(told, "instance", out->crashes_over.instance); break;
    case PARTITION_OUT_STOPPED:
        told_number(told, "kind", out->stopped.kind);
        told_bytes(told, "instance", out->stopped.instance);
        told_bytes(told, "text", out->stopped.text);
        told_number(told, "execution", out->stopped.execution);
        break;
    case PARTITION_OUT_LIMITED:
        told_number(told, "limit", out->limited.limit);
        told_bytes(told, "instance", out->limited.instance);
        told_bytes(told, "orchestration", out->limited.orchestration);
        told_number(told, "execution", out->limited.execution);
        break;
    case PARTITION_OUT_LINE:
        told_number(told, "level", out->line.level);
        told_bytes(told, "instance", out->line.instance);
        told_bytes(told, "text", out->line.text);
        told_number(told, "execution", out->line.execution);
        break;
    case PARTITION_OUT_QUERY_ANSWER:
        told_number(told, "status", out->query_answer.status);
        told_bytes(told, "data", out->query_answer.data);
        break;
    default: break;
    }
}

/* Outputs that ask to read. */
static void told_reads(struct told *told, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_READ_TAIL: told_number(told, "count", out->read_tail.count); break;
    case PARTITION_OUT_READ_LOG:
        told_number(told, "from", out->read_log.from);
        told_number(told, "to", out->read_log.to);
        break;
    case PARTITION_OUT_LOAD:
        told_bytes(told, "instance", out->load.instance);
        told_number(told, "execution", out->load.execution);
        break;
    case PARTITION_OUT_READ_IDS:
        told_number(told, "since", out->read_ids.since);
        told_number(told, "most", out->read_ids.most);
        break;
    case PARTITION_OUT_FIND_DISPENSABLE:
        told_number(told, "below", out->find_dispensable.below);
        told_number(told, "published", out->find_dispensable.published);
        told_number(told, "looked", out->find_dispensable.looked);
        told_number(told, "before_ms", out->find_dispensable.before_ms);
        break;
    case PARTITION_OUT_READ_TIMERS: told_number(told, "before_ms", out->read_timers.before_ms); break;
    case PARTITION_OUT_READ_INBOX:
        told_number(told, "from", out->read_inbox.from);
        told_seen(told, &out->read_inbox.seen);
        break;
    case PARTITION_OUT_READ_RESULTS:
        told_number(told, "from", out->read_results.from);
        told_number(told, "count", out->read_results.count);
        told_seen(told, &out->read_results.seen);
        break;
    default: break;
    }
}

static void told_effects(struct told *told, const struct partition_out *out)
{
    switch (out->kind) {
    case PARTITION_OUT_CLOSED: told_closed(told, &out->closed); break;
    case PARTITION_OUT_OPENED: told_number(told, "epoch", out->opened.epoch); break;
    case PARTITION_OUT_DELETE_RECORDS: told_delete_records(told, &out->delete_records); break;
    case PARTITION_OUT_APPEND: told_append(told, &out->append); break;
    case PARTITION_OUT_REMOVE_HISTORY: told_remove(told, &out->remove_history); break;
    case PARTITION_OUT_REMOVE_RECORDS: told_remove_records(told, &out->remove_records); break;
    case PARTITION_OUT_STORE_OPEN: told_number(told, "epoch", out->store_open.epoch); break;
    case PARTITION_OUT_APPLY: told_batch(told, out->apply.batch); break;
    case PARTITION_OUT_PUBLISH_WORK: told_work(told, &out->publish_work); break;
    case PARTITION_OUT_WITHDRAW: told_number(told, "sequence", out->withdraw.sequence); break;
    case PARTITION_OUT_SEND:
        told_bytes(told, "route", out->send.route);
        told_bytes(told, "instance", out->send.instance);
        told_bytes(told, "bytes", out->send.bytes);
        break;
    case PARTITION_OUT_PURGE_INBOX:
        told_number(told, "below", out->purge_inbox.below);
        told_seen(told, &out->purge_inbox.seen);
        break;
    default: break;
    }
}

void told_partition(struct told *told, const struct partition_out *out)
{
    told_line(told, "partition");
    told_number(told, "kind", out->kind);
    told_number(told, "generation", out->generation);
    told_number(told, "token", out->token);
    told_words(told, out);
    told_reads(told, out);
    told_effects(told, out);
}

/* ---- outputs of the worker ---- */

static void told_key(struct told *told, const struct worker_key *key)
{
    told_bytes(told, "instance", key->instance);
    told_number(told, "execution", key->execution);
    told_number(told, "activity_id", key->activity_id);
    told_number(told, "try", key->try_number);
}

static void told_row(struct told *told, const struct worker_row *row)
{
    told_line(told, "  row");
    told_number(told, "id", row->id);
    told_key(told, &row->key);
    told_number(told, "attempt", row->attempt);
    told_number(told, "claimed_us", row->claimed_us);
    told_number(told, "isolated", row->isolated);
    told_number(told, "settled", row->settled);
}

void told_worker(struct told *told, const struct worker_out *out)
{
    told_line(told, "worker");
    told_number(told, "kind", out->kind);
    told_number(told, "id", out->id);
    told_number(told, "attempt", out->attempt);
    told_number(told, "deadline_ms", out->deadline_ms);
    told_number(told, "delay_ms", out->delay_ms);
    told_number(told, "count", out->count);
    for (size_t i = 0; i < out->ids_len; i++)
        told_number(told, "of", out->ids[i]);
    text_of(told, "path", worker_path_name(out->path));
    text_of(told, "end", worker_end_name(out->end));
    told_bytes(told, "cancel_kind", out->cancel_kind);
    told_bytes(told, "reason", out->reason);
    for (size_t i = 0; i < out->rows_len; i++)
        told_row(told, &out->rows[i]);
}

void told_counters(struct told *told, const struct worker_counters *counters)
{
    const uint64_t *const n = (const uint64_t *)counters;
    told_line(told, "counters");
    for (size_t i = 0; i < sizeof *counters / sizeof *n; i++)
        told_number(told, "n", n[i]);
}
