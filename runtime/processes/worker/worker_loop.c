/* The loop that owns the machine: takes all mail, then carries out all outputs, then sleeps. */
#include "clock.h"
#include "dying.h"
#include "fatal_signals.h"
#include "log_work.h"
#include "subject.h"
#include "worker_parts.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WARN_EVERY_MS = 10000 };

void worker_loop_state(struct worker_host *host)
{
    if (!atomic_exchange(&host->state_sent, true))
        mailbox_push(&host->inbox, &host->state.mail);
}

/* ---- mail ---- */

static void take_state(struct worker_host *host)
{
    atomic_store(&host->state_sent, false);
    worker_count_link(host);
    worker_wish(host);
}

static void find_handler(const struct worker_host *host, struct thole_activity *act)
{
    const thole_program *const program = host->program;
    size_t i = 0;
    while (i < program->activities_len &&
           !thole_slice_equal(thole_slice_from(program->activities[i].name), act->message->item.activity))
        i++;
    if (i == program->activities_len)
        return;
    const thole_activity_options *const options = program->activities[i].options;
    bool const in_process = options != NULL && options->isolation == THOLE_ISOLATION_PROCESS;
    act->run = in_process ? process_pool_run : program->activities[i].run;
    act->arg = program->activities[i].arg;
    act->quick = handler_is_quick(&program->activities[i]);
    act->pool = in_process ? host->processes : NULL;
    act->entry = i;
}

static void warn_unknown(struct worker_host *host, thole_slice name)
{
    for (size_t i = 0; i < host->unknown_names_len; i++)
        if (thole_slice_equal(thole_slice_from(host->unknown_names[i]), name))
            return;
    if (host->unknown_names_len == WORKER_UNKNOWN_NAMES_MAX || name.len > THOLE_NAME_BYTES_MAX)
        return;
    memcpy(host->unknown_names[host->unknown_names_len++], name.ptr, name.len);
    log_line(LOG_LEVEL_WARN, "worker",
             "activity %.*s is queued in %s but not registered in this program; it waits for a worker that "
             "knows it",
             THOLE_FMT(name), host->options.queue);
}

/* Whether no worker of the queue knows the activity, which this one does not know. */
static bool is_unserved(struct worker_host *host, thole_slice name)
{
    bool asks = false;
    enum served const served = served_names_look(host->served, thole_slice_from(host->options.queue), name,
                                                 clock_monotonic_ms(), &asks);
    if (asks)
        queue_keeper_ask(host->keeper);
    return served == SERVED_BY_NONE;
}

static void hand_back(struct worker_host *host, struct thole_activity *act)
{
    if (work_message_signal(host->connection, act->message, WORK_NAK, NULL) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "a message comes back when its lease ends");
    activity_destroy(act);
}

/* A redelivery of a message that is held here, as after a restart of the broker: signals use the new
 * delivery. Or another message that says the same: one will do. */
static void worker_loop_adopt(struct worker_host *host, const struct worker_key *key,
                              struct thole_activity *again)
{
    struct thole_activity *const act =
        worker_activity(worker_holds(host->machine, key, &again->message->digest));
    struct log_fields const fields = log_work(&act->message->item);
    log_line_of(LOG_LEVEL_DEBUG, "worker", &fields, "came again while it is held here");
    bool const takes = worker_takes_again(act->message->sequence, again->message->sequence);
    if (act->message->sequence != again->message->sequence &&
        work_message_signal(host->connection, takes ? act->message : again->message, WORK_ACK, NULL) !=
            THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "a message that is there twice comes back");
    if (takes) {
        work_message_adopt(act->message, again->message);
        again->message = NULL;
    }
    activity_destroy(again);
}

/* Of a worker whose activities run elsewhere: it is for others, since nobody there asks for it. */
static bool is_unwanted(struct worker_host *host, const struct thole_activity *act)
{
    const struct remote_handlers *const remote = host->options.remote;
    const struct work_item *const item = &act->message->item;
    struct worker_key const key = {item->instance, item->execution, item->activity_id,
                                   (uint32_t)item->try_number};
    return remote != NULL && worker_holds(host->machine, &key, &act->message->digest) == 0 &&
           !remote->wants(remote->arg, host);
}

static void take_delivered(struct worker_host *host, struct thole_activity *act)
{
    const struct work_item *const item = &act->message->item;
    unsigned const arriving = atomic_fetch_sub(&host->arriving, 1);
    assert(arriving > 0 && act->message != NULL && !act->running);
    (void)arriving;
    if (is_unwanted(host, act)) {
        hand_back(host, act);
        return;
    }
    if (host->wish > 0)
        host->wish--;
    find_handler(host, act);
    act->partition = subject_partition(item->instance, host->topology.partitions);
    if (act->run == NULL)
        warn_unknown(host, item->activity);
    struct worker_in const in = {
        .kind = WORKER_IN_DELIVERED,
        .id = (uint64_t)(uintptr_t)act,
        .key = {item->instance, item->execution, item->activity_id, (uint32_t)item->try_number},
        .digest = act->message->digest,
        .nonce = item->nonce,
        .known = act->run != NULL,
        .unserved = act->run == NULL && is_unserved(host, item->activity),
        .quick = worker_is_quick(host, act),
        .deliveries = act->message->deliveries,
        .arrived_ms = act->arrived_ms};
    thole_status const status = worker_input(host->machine, &in, clock_monotonic_ms());
    if (status == THOLE_CONFLICT)
        worker_loop_adopt(host, &in.key, act);
    else if (status != THOLE_OK)
        hand_back(host, act);
}

static void take_finished(struct worker_host *host, struct thole_activity *act)
{
    bool const elsewhere = host->options.remote != NULL; /* a remote slot is free when the handler has
                                                            returned */
    uint32_t const replaced =
        elsewhere ? act->given_up && !host->stopping : handlers_replaced(host->handlers);
    assert(act->running);
    act->running = false;
    worker_say_returned(act);
    worker_count_returned(host, act);
    if (act->forgotten) {
        activity_destroy(act);
    } else {
        worker_give(host, &(struct worker_in){.kind = WORKER_IN_FINISHED,
                                              .id = (uint64_t)(uintptr_t)act,
                                              .unknown = act->unknown,
                                              .status = act->status});
    }
    for (uint32_t i = 0; i < replaced; i++)
        worker_give(host, &(struct worker_in){.kind = WORKER_IN_SLOT});
}

/* A server that forbids a publish does not answer it, but reports it to the connection. */
static void say_unpublished(struct worker_host *host, const struct thole_activity *act)
{
    thole_error why = {.status = THOLE_UNAVAILABLE};
    struct log_fields const fields = log_work(&act->message->item);
    if (request_is_full(act->publish_err_code))
        (void)thole_fail(&why, THOLE_UNAVAILABLE, "%s", request_reason(REQUEST_BUSY, act->publish_err_code));
    else if (act->publish_err_code != 0) /* 0: the server gave no code, or no answer */
        (void)thole_fail(&why, THOLE_UNAVAILABLE, "NATS refuses it with error code %u",
                         act->publish_err_code);
    else if (!nats_watch_forbidden(&host->nats, WARN_EVERY_MS, &why))
        (void)thole_fail(&why, THOLE_UNAVAILABLE, "NATS does not answer");
    log_line_of(LOG_LEVEL_WARN, "worker", &fields, "a result could not be stored, it is tried again: %s",
                why.text);
}

static void worker_loop_take_published(struct worker_host *host, const struct thole_activity *act)
{
    uint64_t const now_ms = clock_monotonic_ms();
    worker_count_published(host, act->published_ok);
    if (!act->published_ok && (host->warned_ms == 0 || now_ms - host->warned_ms >= WARN_EVERY_MS)) {
        host->warned_ms = now_ms;
        say_unpublished(host, act);
    }
    worker_give(host, &(struct worker_in){.kind = WORKER_IN_PUBLISHED,
                                          .id = (uint64_t)(uintptr_t)act,
                                          .ok = act->published_ok});
}

/* Of claims, and of quick ones. All activities exist: a message is not freed while its claim is in flight. */
static void take_details(const struct worker_host *host, const struct row_call *call)
{
    for (size_t i = 0; i < call->len && !call->unknown; i++) {
        const struct worker_row *const row = &call->rows[i];
        const struct claim *const claim = &call->claims[i];
        if (row->state != WORKER_ROW_MINE || (call->kind == ROW_CALL_BEGIN && !row->quick))
            continue;
        struct thole_activity *const act = worker_activity(row->id);
        act->lost = claim->lost;
        act->claimed_us = row->claimed_us;
        (void)snprintf(act->lost_worker, sizeof act->lost_worker, "%.*s", THOLE_FMT(claim->lost_worker));
        (void)snprintf(act->lost_report, sizeof act->lost_report, "%.*s", THOLE_FMT(claim->lost_report));
        struct activity_parties const parties = {claim->orchestration, claim->version,
                                                 host->incarnation_slice};
        if (activity_begin(act, row->attempt, UINT64_MAX, claim->details, &parties) != THOLE_OK)
            log_line(LOG_LEVEL_WARN, "worker", "out of memory: a handler does not see its details");
    }
}

static void worker_loop_take_answer(struct worker_host *host, const struct row_call *call)
{
    static const enum worker_in_kind kinds[ROW_CALL_KINDS] = {
        [ROW_CALL_CLAIM] = WORKER_IN_CLAIMED,     [ROW_CALL_RENEW] = WORKER_IN_RENEWED,
        [ROW_CALL_RELEASE] = WORKER_IN_RELEASED,  [ROW_CALL_BEGIN] = WORKER_IN_BEGUN,
        [ROW_CALL_COMMIT] = WORKER_IN_COMMITTED,  [ROW_CALL_LEAVE] = WORKER_IN_LEFT,
        [ROW_CALL_NOT_LOST] = WORKER_IN_NOT_LOST, [ROW_CALL_SHELVE] = WORKER_IN_SHELVED,
    };
    assert(call->kind != ROW_CALL_ROLLBACK);
    if (call->kind == ROW_CALL_CLAIM || call->kind == ROW_CALL_BEGIN)
        take_details(host, call);
    worker_count_answer(host, call);
    host->details_round += call->unknown; /* the details that were sent may be lost */
    worker_give(host, &(struct worker_in){.kind = kinds[call->kind],
                                          .unknown = call->unknown,
                                          .rows = call->rows,
                                          .rows_len = call->len});
}

static void free_push(struct push_mail *push)
{
    arena_release(&push->arena);
    free(push);
}

static void take_push(struct worker_host *host, struct push_mail *push)
{
    const struct cancel_notice *const notice = &push->notice;
    uint64_t const unproven = worker_counters(host->machine).unproven;
    worker_give(host, &(struct worker_in){.kind = WORKER_IN_PUSHED,
                                          .key = {notice->instance, notice->execution, 0, notice->try_number},
                                          .activity_ids = notice->activity_ids,
                                          .activity_ids_len = notice->activity_ids_len,
                                          .proofs = notice->proofs,
                                          .early = notice->early,
                                          .since_ms = worker_since_ms(notice->decided_ms),
                                          .cancel_kind = notice->kind,
                                          .reason = notice->reason});
    if (worker_counters(host->machine).unproven > unproven)
        log_limits_line(host->lines, clock_monotonic_ms(), WORKER_LINE_UNPROVEN,
                        (&(struct log_fields){.instance = notice->instance, .execution = notice->execution}),
                        "a cancel push was ignored: it is not from an engine");
    free_push(push);
}

static void worker_loop_take(struct worker_host *host, struct worker_mail *mail)
{
    switch (mail->kind) {
    case WORKER_MAIL_STATE: take_state(host); break;
    case WORKER_MAIL_STOP:
        host->stopping = true;
        worker_give(host,
                    &(struct worker_in){.kind = WORKER_IN_STOP, .limit_ms = host->options.stop_limit_ms});
        break;
    case WORKER_MAIL_DELIVERED: take_delivered(host, mail->owner); break;
    case WORKER_MAIL_FINISHED: take_finished(host, mail->owner); break;
    case WORKER_MAIL_PUBLISHED: worker_loop_take_published(host, mail->owner); break;
    case WORKER_MAIL_ANSWER: worker_loop_take_answer(host, mail->owner); break;
    case WORKER_MAIL_PUSH: take_push(host, mail->owner); break;
    }
}

static void log_counters(const struct worker_machine *machine)
{
    struct worker_counters const c = worker_counters(machine);
    log_line(LOG_LEVEL_INFO, "worker",
             "worker stopped: claimed=%" PRIu64 " completed=%" PRIu64 " cancelled_by_push=%" PRIu64
             " cancelled_by_renewal=%" PRIu64 " lease_lost=%" PRIu64 " abandoned=%" PRIu64 " stolen=%" PRIu64
             " delivered=%" PRIu64 " gone=%" PRIu64 " refused=%" PRIu64 " unclaimed=%" PRIu64
             " unknown=%" PRIu64 " handed_back=%" PRIu64 " contradicted=%" PRIu64 " timed_out=%" PRIu64
             " left=%" PRIu64 " isolated=%" PRIu64 " deferred=%" PRIu64 " poisoned=%" PRIu64 " held=%" PRIu64
             " adopted=%" PRIu64 " forged=%" PRIu64 " unproven=%" PRIu64 " resumed=%" PRIu64 " quick=%" PRIu64
             " shelved=%" PRIu64,
             c.claimed, c.completed, c.cancelled_by_push, c.cancelled_by_renewal, c.lease_lost, c.abandoned,
             c.stolen, c.delivered, c.gone, c.refused, c.unclaimed, c.unknown, c.handed_back, c.contradicted,
             c.timed_out, c.left, c.isolated, c.deferred, c.poisoned, c.held, c.adopted, c.forged, c.unproven,
             c.resumed, c.quick, c.shelved);
}

static uint64_t next_deadline_ms(struct worker_host *host)
{
    uint64_t const told = log_limits_rest(host->lines, clock_monotonic_ms());
    uint64_t const machine = worker_next_deadline_ms(host->machine);
    return machine < told ? machine : told;
}

static void worker_loop_awake(void *arg)
{
    struct worker_host *const host = arg;
    mailbox_awake(&host->inbox);
    pulse_begins(host->pulse, clock_monotonic_ms());
}

static uint64_t worker_loop_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* For mail, of which most is what this thread then reads itself from its connections to NATS and Postgres. */
static void worker_loop_wait_for_mail(struct worker_host *host)
{
    uint64_t claims_ms, completions_ms;
    struct pollfd also[] = {{.fd = mailbox_wakeup(&host->inbox), .events = POLLIN},
                            row_calls_socket(host->claims, &claims_ms),
                            row_calls_socket(host->completions, &completions_ms)};
    uint64_t const next_ms =
        worker_loop_min_ms(next_deadline_ms(host), worker_loop_min_ms(claims_ms, completions_ms));
    uint64_t const deadline_ms = mailbox_rest(&host->inbox) ? next_ms : 0;
    pulse_rests(host->pulse);
    connection_read(host->connection, also, sizeof also / sizeof also[0], deadline_ms, worker_loop_awake,
                    host);
    row_calls_continue(host->claims, also[1].revents);
    row_calls_continue(host->completions, also[2].revents);
}

void *worker_loop_main(void *arg)
{
    struct worker_host *const host = arg;
    struct worker_out out;
    struct mail *next;
    void *const stack = fatal_thread_begin(); /* handlers that are quick run here */
    (void)pthread_setname_np(pthread_self(), "thole-worker");
    while (!host->stopped && !atomic_load(&host->dead)) {
        worker_count_machine(host);
        worker_loop_wait_for_mail(host);
        while (dying_is()) /* do not process answers while the process is dying */
            (void)pause();
        connection_cork(host->connection);
        for (struct mail *mail = mailbox_take_all(&host->inbox); mail != NULL; mail = next) {
            next = mail->next;
            worker_loop_take(host, (struct worker_mail *)mail); /* the node is its first field */
        }
        worker_advance(host->machine, clock_monotonic_ms());
        while (!atomic_load(&host->dead) && worker_poll(host->machine, &out))
            worker_output(host, &out);
        connection_uncork(host->connection);
    }
    connection_leave(host->connection);
    pulse_rests(host->pulse);
    worker_count_machine(host);
    log_counters(host->machine);
    if (host->options.remote != NULL)
        host->options.remote->stopped(host->options.remote->arg, host);
    fatal_thread_end(stack);
    return NULL;
}

void worker_loop_drain(struct worker_host *host)
{
    struct mail *next;
    for (struct mail *mail = mailbox_take_all(&host->inbox); mail != NULL; mail = next) {
        struct worker_mail *const node = (struct worker_mail *)mail;
        next = mail->next;
        switch (node->kind) {
        case WORKER_MAIL_DELIVERED: hand_back(host, node->owner); break;
        /* abandoned, and no longer held by the machine */
        case WORKER_MAIL_FINISHED: activity_destroy(node->owner); break;
        case WORKER_MAIL_PUSH: free_push(node->owner); break;
        case WORKER_MAIL_STATE:
        case WORKER_MAIL_STOP:
        case WORKER_MAIL_PUBLISHED:
        case WORKER_MAIL_ANSWER: break;
        }
    }
}

void worker_loop_give_up(struct worker_host *host)
{
    size_t at = 0;
    uint64_t id;
    while (host->machine != NULL && (id = worker_next_held(host->machine, &at)) != 0) {
        struct thole_activity *const act = worker_activity(id);
        if (work_message_signal(host->connection, act->message, WORK_NAK, NULL) != THOLE_OK)
            log_line(LOG_LEVEL_DEBUG, "worker", "a message comes back when its lease ends");
        if (act->running)
            act->forgotten = true; /* now owned by the host that runs it */
        else
            activity_destroy(act);
    }
}
