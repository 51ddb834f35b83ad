/* Carries out the machine's outputs. */
#include "clock.h"
#include "dying.h"
#include "log_work.h"
#include "worker_parts.h"
#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { BATCH_MS = 500 /* of quick handlers: the loop has other things to do */ };

/* ---- the machine ---- */

void worker_give(struct worker_host *host, const struct worker_in *in)
{
    /* only deliveries can be refused, and those use deliver() */
    thole_status const status = worker_input(host->machine, in, clock_monotonic_ms());
    assert(status == THOLE_OK);
    (void)status;
}

void worker_wish(struct worker_host *host)
{
    uint32_t const arriving = atomic_load(&host->arriving);
    bool const wants = host->wish > arriving && !atomic_load(&host->rests);
    puller_want(host->puller, wants ? host->wish - arriving : 0);
}

/* ---- logs ---- */

static struct log_fields fields_of(const struct thole_activity *act)
{
    struct log_fields fields = log_work(&act->message->item);
    fields.attempt = act->attempt;
    return fields;
}

static void worker_outputs_report(enum log_level level, const struct thole_activity *act, const char *what)
{
    struct log_fields const fields = fields_of(act);
    if (log_enabled(level))
        log_line_of(level, "worker", &fields, "%s", what);
}

/* Like worker_outputs_report(), for an activity that was asked to end: with the reason and the time since
 * then. */
static void say_asked(enum log_level level, const struct thole_activity *act, const char *what,
                      const char *returned)
{
    struct log_fields const fields = fields_of(act);
    if (log_enabled(level))
        log_line_of(level, "worker", &fields, "%s: token=%s after_ms=%" PRIu64 "%s%s", what,
                    thole_cancel_kind_name(act->fired_kind), clock_monotonic_ms() - act->fired_ms,
                    returned[0] == '\0' ? "" : " returned=", returned);
}

void worker_say_returned(const struct thole_activity *act)
{
    bool const heeded =
        act->status == THOLE_OK || act->status == THOLE_CANCELLED || act->status == THOLE_LATER;
    const char *const returned = thole_status_name(act->status);
    if (act->fired_kind == THOLE_CANCEL_NONE)
        return;
    if (act->given_up && act->pool != NULL)
        say_asked(LOG_LEVEL_INFO, act, "its process is gone", "");
    else if (act->given_up)
        say_asked(LOG_LEVEL_INFO, act, "a handler that was given up has returned", returned);
    else if (heeded)
        say_asked(LOG_LEVEL_INFO, act, "ended in its grace", returned);
    else
        say_asked(LOG_LEVEL_WARN, act, "failed in its grace", returned);
}

static void say_fired(const struct thole_activity *act, const struct worker_out *out)
{
    struct log_fields const fields = fields_of(act);
    if (log_enabled(LOG_LEVEL_DEBUG))
        log_line_of(LOG_LEVEL_DEBUG, "worker", &fields, "token fired: path=%s kind=%.*s reason=%.*s",
                    worker_path_name(out->path), THOLE_FMT(out->cancel_kind), THOLE_FMT(out->reason));
}

/* The line names what the message says, which the row does not confirm. */
static void say_forged(const struct worker_host *host, const struct thole_activity *act)
{
    struct log_fields const fields = log_work(&act->message->item);
    log_limits_line(
        host->lines, clock_monotonic_ms(), WORKER_LINE_FORGED, &fields,
        "a message was removed from queue %s, it is not what an engine has scheduled; who but engines may "
        "publish to the queues?",
        host->options.queue);
}

static void worker_outputs_say_end(const struct worker_host *host, const struct thole_activity *act,
                                   enum worker_end end)
{
    switch (end) {
    case WORKER_END_COMPLETED: break;
    case WORKER_END_GONE:
        worker_outputs_report(LOG_LEVEL_DEBUG, act, "not run, it was cancelled or done before");
        break;
    case WORKER_END_CANCELLED: /* logged when it ended */
        worker_outputs_report(act->fired_kind != THOLE_CANCEL_NONE ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, act,
                              "cancelled");
        break;
    case WORKER_END_REFUSED:
        worker_outputs_report(LOG_LEVEL_WARN, act,
                              "result refused, it was cancelled or another worker was first");
        break;
    case WORKER_END_STOLEN:
        worker_outputs_report(LOG_LEVEL_WARN, act, "result refused, another worker has taken it over");
        break;
    case WORKER_END_LEASE_LOST:
        worker_outputs_report(LOG_LEVEL_WARN, act, "lease lost, it will run again");
        break;
    case WORKER_END_UNCLAIMED:
        worker_outputs_report(LOG_LEVEL_WARN, act, "could not be claimed in time, comes back");
        break;
    case WORKER_END_UNKNOWN: break; /* logged once for each name */
    case WORKER_END_HANDED_BACK: worker_outputs_report(LOG_LEVEL_INFO, act, "handed back"); break;
    case WORKER_END_LATER: worker_outputs_report(LOG_LEVEL_DEBUG, act, "is completed from outside"); break;
    case WORKER_END_DEFERRED:
        worker_outputs_report(LOG_LEVEL_DEBUG, act, "handed back, a poison candidate runs isolated");
        break;
    case WORKER_END_HELD:
        worker_outputs_report(LOG_LEVEL_DEBUG, act, "put back, another lease of it lasts");
        break;
    case WORKER_END_FORGED: say_forged(host, act); break;
    case WORKER_END_UNSERVED:
        worker_outputs_report(LOG_LEVEL_DEBUG, act, "shelved, no worker of the queue knows it");
        break;
    }
}

/* ---- rows ---- */

/* Adds details of heartbeats that were not sent yet, or of which it is unknown whether they were stored. */
static void worker_outputs_note(const struct worker_host *host, struct thole_activity *act,
                                struct row_call *call, struct claim *claim)
{
    uint64_t count = act->sent_round == host->details_round ? act->sent_count : 0;
    struct buf details;
    buf_init(&details, DETAILS_BYTES_MAX);
    claim->noted = activity_details_since(act, &count, &details) &&
                   arena_dup(&call->details, buf_bytes(&details), &claim->details) == THOLE_OK;
    buf_release(&details);
    if (!claim->noted)
        return;
    act->sent_count = count;
    act->sent_round = host->details_round;
}

static void worker_outputs_call_rows(struct worker_host *host, enum row_call_kind kind,
                                     const struct worker_out *out)
{
    struct row_call *const call = &host->calls[kind];
    bool const completes = kind == ROW_CALL_BEGIN || kind == ROW_CALL_COMMIT || kind == ROW_CALL_ROLLBACK;
    bool const notes = kind == ROW_CALL_RENEW || kind == ROW_CALL_RELEASE || kind == ROW_CALL_LEAVE;
    row_call_fill(call, out->rows, out->rows_len, host->lease_ms);
    for (size_t i = 0; i < out->rows_len && kind != ROW_CALL_NOT_LOST; i++)
        call->claims[i].partition = worker_activity(out->rows[i].id)->partition;
    for (size_t i = 0; i < out->rows_len; i++)
        call->claims[i].unheard = !atomic_load(&host->heard);
    for (size_t i = 0; i < out->rows_len && notes; i++)
        worker_outputs_note(host, worker_activity(out->rows[i].id), call, &call->claims[i]);
    row_calls_send(completes ? host->completions : host->claims, call);
}

/* ---- handlers ---- */

static void worker_outputs_run(struct worker_host *host, struct thole_activity *act,
                               const struct worker_out *out)
{
    assert(act->run != NULL && !act->running);
    act->attempt = out->attempt;
    act->deadline_ms = out->deadline_ms;
    act->running = true;
    worker_count_started(host, act);
    if (host->options.remote != NULL)
        host->options.remote->run(host->options.remote->arg, host, act);
    else
        handlers_run(host->handlers, act);
}

/* Until one was slow, or all together: the others are claimed, and run on threads. */
static void worker_outputs_run_batch(struct worker_host *host, const struct worker_out *out)
{
    struct thole_activity *acts[WORKER_QUICK_MAX];
    size_t const n = out->rows_len;
    uint64_t const now_ms = clock_monotonic_ms();
    assert(n <= WORKER_QUICK_MAX);
    for (size_t i = 0; i < n; i++) { /* the rows are the machine's until it gets the next input */
        acts[i] = worker_activity(out->rows[i].id);
        acts[i]->attempt = out->rows[i].attempt;
        if (out->rows[i].left_ms > 0)
            acts[i]->deadline_ms = now_ms + out->rows[i].left_ms;
    }
    bool runs = true;
    dying_holds(row_calls_connection(host->completions));
    for (size_t i = 0; i < n && runs; i++) {
        runs = worker_is_quick(host, acts[i]) && clock_monotonic_ms() < now_ms + BATCH_MS;
        if (runs)
            worker_run_quick(host, acts[i]);
        worker_give(host, &(struct worker_in){.kind = WORKER_IN_FINISHED,
                                              .id = (uint64_t)(uintptr_t)acts[i],
                                              .unknown = !runs,
                                              .status = acts[i]->status});
    }
    dying_holds(-1);
}

static void worker_outputs_expire(struct thole_activity *act, uint64_t attempt)
{
    act->attempt = attempt;
    act->timed_out = true;
    worker_outputs_report(LOG_LEVEL_INFO, act, "not run (again), its deadline has passed");
}

static void worker_outputs_poison(struct thole_activity *act, uint64_t attempt)
{
    act->attempt = attempt;
    act->poisoned = true;
    worker_outputs_report(LOG_LEVEL_ERROR, act,
                          "poisoned, not run again: it was lost with its workers too often");
}

static void worker_outputs_fire(struct worker_host *host, struct thole_activity *act,
                                const struct worker_out *out)
{
    worker_count_fired(host, out);
    say_fired(act, out);
    act->fired_kind = cancel_kind_find(out->cancel_kind);
    act->fired_ms = clock_monotonic_ms();
    act->timed_out |= out->path == WORKER_PATH_TIMEOUT;
    activity_fire(act, &(struct activity_cancel){
                           .kind = act->fired_kind, .reason = out->reason, .grace_end_ms = out->deadline_ms});
    if (host->options.remote != NULL)
        host->options.remote->fired(host->options.remote->arg, host, act);
}

static void worker_outputs_hurry(struct worker_host *host, struct thole_activity *act, uint64_t deadline_ms)
{
    activity_hurry(act, deadline_ms);
    if (host->options.remote != NULL)
        host->options.remote->fired(host->options.remote->arg, host, act);
}

static void worker_outputs_abandon(struct worker_host *host, struct thole_activity *act)
{
    act->given_up = true;
    say_asked(LOG_LEVEL_WARN, act,
              act->pool != NULL ? "the handler did not return in time, its process is killed"
                                : "the handler did not return in time, its slot is given up",
              "");
    if (host->options.remote == NULL && handlers_abandon(host->handlers, act, !host->stopping))
        worker_give(host, &(struct worker_in){.kind = WORKER_IN_SLOT});
}

/* ---- messages ---- */

static void signal_message(struct worker_host *host, struct thole_activity *act, enum work_signal signal)
{
    thole_error error = {.status = THOLE_OK};
    if (work_message_signal(host->connection, act->message, signal, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "a message will come back: %s", error.text);
}

static void worker_outputs_put_back(struct worker_host *host, struct thole_activity *act, uint64_t delay_ms)
{
    thole_error error = {.status = THOLE_OK};
    if (work_message_put_back(host->connection, act->message, delay_ms, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "a message will come back: %s", error.text);
}

/* Frees the activity, or lets the return of its handler free it. */
static void worker_outputs_forget(struct thole_activity *act)
{
    if (act->running)
        act->forgotten = true; /* abandoned: its thread still reads the input */
    else
        activity_destroy(act);
}

static void worker_outputs_end(struct worker_host *host, struct thole_activity *act,
                               const struct worker_out *out)
{
    if (out->kind == WORKER_OUT_ACK)
        signal_message(host, act, WORK_ACK);
    else if (out->kind == WORKER_OUT_NAK && out->delay_ms > 0)
        worker_outputs_put_back(host, act, out->delay_ms);
    else if (out->kind == WORKER_OUT_NAK)
        signal_message(host, act, WORK_NAK);
    else if (out->kind == WORKER_OUT_TERM)
        signal_message(host, act, WORK_TERM);
    worker_count_end(host, out);
    worker_outputs_say_end(host, act, out->end);
    if (host->options.remote != NULL)
        host->options.remote->ended(host->options.remote->arg, host, act,
                                    out->end == WORKER_END_COMPLETED || out->end == WORKER_END_LATER);
    worker_outputs_forget(act);
}

void worker_output(struct worker_host *host, const struct worker_out *out)
{
    switch (out->kind) {
    case WORKER_OUT_WANT:
        host->wish = out->count;
        worker_wish(host);
        break;
    case WORKER_OUT_CLAIM: worker_outputs_call_rows(host, ROW_CALL_CLAIM, out); break;
    case WORKER_OUT_RENEW: worker_outputs_call_rows(host, ROW_CALL_RENEW, out); break;
    case WORKER_OUT_RELEASE: worker_outputs_call_rows(host, ROW_CALL_RELEASE, out); break;
    case WORKER_OUT_LEAVE: worker_outputs_call_rows(host, ROW_CALL_LEAVE, out); break;
    case WORKER_OUT_NOT_LOST: worker_outputs_call_rows(host, ROW_CALL_NOT_LOST, out); break;
    case WORKER_OUT_SHELVE: worker_outputs_call_rows(host, ROW_CALL_SHELVE, out); break;
    case WORKER_OUT_COMPLETE_BEGIN: worker_outputs_call_rows(host, ROW_CALL_BEGIN, out); break;
    case WORKER_OUT_COMPLETE_COMMIT: worker_outputs_call_rows(host, ROW_CALL_COMMIT, out); break;
    case WORKER_OUT_COMPLETE_ROLLBACK: worker_outputs_call_rows(host, ROW_CALL_ROLLBACK, out); break;
    case WORKER_OUT_COMPLETE_RUN: worker_outputs_run_batch(host, out); break;
    case WORKER_OUT_COMPLETE_PUBLISH: worker_results_publish(host, out->ids, out->ids_len); break;
    case WORKER_OUT_RUN: worker_outputs_run(host, worker_activity(out->id), out); break;
    case WORKER_OUT_EXPIRED: worker_outputs_expire(worker_activity(out->id), out->attempt); break;
    case WORKER_OUT_POISONED: worker_outputs_poison(worker_activity(out->id), out->attempt); break;
    case WORKER_OUT_FIRE: worker_outputs_fire(host, worker_activity(out->id), out); break;
    case WORKER_OUT_HURRY: worker_outputs_hurry(host, worker_activity(out->id), out->deadline_ms); break;
    case WORKER_OUT_ABANDON: worker_outputs_abandon(host, worker_activity(out->id)); break;
    case WORKER_OUT_PROGRESS:
        for (size_t i = 0; i < out->ids_len; i++)
            signal_message(host, worker_activity(out->ids[i]), WORK_PROGRESS);
        break;
    case WORKER_OUT_ACK:
    case WORKER_OUT_NAK:
    case WORKER_OUT_TERM:
    case WORKER_OUT_DROP: worker_outputs_end(host, worker_activity(out->id), out); break;
    case WORKER_OUT_STOPPED: host->stopped = true; break;
    }
}
