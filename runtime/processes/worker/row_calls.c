#include "row_calls.h"
#include "call_fiber.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "message.h"
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { BACKOFF_MS_MIN = 100, BACKOFF_MS_MAX = 5000, SAY_EVERY_MS = 30000 };

static_assert((int)WORKER_ROW_MISSING == (int)ROW_MISSING && (int)WORKER_ROW_MINE == (int)ROW_MINE &&
                  (int)WORKER_ROW_STOLEN == (int)ROW_STOLEN &&
                  (int)WORKER_ROW_CANDIDATE == (int)ROW_CANDIDATE && (int)WORKER_ROW_HELD == (int)ROW_HELD &&
                  (int)WORKER_ROW_UNKNOWN == (int)ROW_UNKNOWN && (int)WORKER_ROW_FORGED == (int)ROW_FORGED,
              "the machine and the store name a row's states alike");

struct row_calls {
    struct row_calls_options options;
    struct mailbox inbox;
    pthread_t thread;
    atomic_size_t with_thread; /* calls; while there are any, all below is the thread's, else the sender's */
    struct call_fiber *fiber;  /* the sender's */
    struct row_call *running;  /* on it */
    struct mail *first, **end; /* calls that wait for it */
    struct postgres *pg;       /* with a pool: while a call or a transaction has one */
    enum row_pool_use use;
    struct metric_cells *cells;
    uint32_t failures;
    uint64_t gate_ms; /* not tried again before this */
    uint64_t said_ms; /* when a failure was last logged */
};

/* ---- calls ---- */

void row_call_init(struct row_call *call, enum row_call_kind kind, size_t cap)
{
    *call = (struct row_call){.kind = kind, .cap = cap};
    arena_init(&call->details, (cap + 1) * (DETAILS_BYTES_MAX + 256));
    call->mail = (struct worker_mail){.kind = WORKER_MAIL_ANSWER, .owner = call};
    if (cap == 0)
        return;
    call->claims = memory_array(cap, sizeof *call->claims);
    call->rows = memory_array(cap, sizeof *call->rows);
    call->instances = memory_array(cap, sizeof *call->instances);
}

void row_call_release(struct row_call *call)
{
    assert(!call->away); /* the thread has ended, or has returned it */
    free(call->claims);
    free(call->rows);
    free(call->instances);
    arena_release(&call->details);
    *call = (struct row_call){.kind = call->kind};
}

void row_call_fill(struct row_call *call, const struct worker_row *rows, size_t n, uint64_t lease_ms)
{
    assert(n <= call->cap && !call->away);
    call->len = n;
    call->unknown = false;
    arena_release(&call->details);
    for (size_t i = 0; i < n; i++) {
        thole_slice const instance = rows[i].key.instance;
        assert(instance.len <= THOLE_ID_BYTES_MAX);
        memcpy(call->instances[i], instance.ptr, instance.len);
        call->rows[i] = rows[i];
        call->rows[i].key.instance.ptr = call->instances[i];
        call->claims[i] = (struct claim){.key = {.instance = call->rows[i].key.instance,
                                                 .execution = rows[i].key.execution,
                                                 .activity_id = rows[i].key.activity_id,
                                                 .try_number = rows[i].key.try_number},
                                         .digest = work_digest_slice(&call->rows[i].digest),
                                         .lease_ms = lease_ms,
                                         .attempt = rows[i].attempt,
                                         .claimed_us = rows[i].claimed_us,
                                         .quick = rows[i].quick,
                                         .isolated = rows[i].isolated,
                                         .settled = rows[i].settled};
    }
}

/* ---- carrying one out ---- */

static bool any_quick(const struct row_call *call)
{
    bool any = false;
    for (size_t i = 0; i < call->len && !any; i++)
        any = call->claims[i].quick;
    return any;
}

static thole_status row_calls_execute(struct row_calls *calls, struct row_call *call, thole_error *reterr)
{
    thole_slice const worker = calls->options.worker;
    switch (call->kind) {
    case ROW_CALL_CLAIM:
        return worker_store_claim(calls->pg, worker, &calls->options.policy, call->claims, call->len,
                                  &call->details, reterr);
    case ROW_CALL_RENEW: return worker_store_renew(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_RELEASE: return worker_store_release(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_LEAVE: return worker_store_leave(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_NOT_LOST: return worker_store_not_lost(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_SHELVE: return worker_store_shelve(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_BEGIN:
        return any_quick(call)
                   ? worker_store_complete_quick(calls->pg, worker, call->claims, call->len, &call->details,
                                                 reterr)
                   : worker_store_complete_begin(calls->pg, worker, call->claims, call->len, reterr);
    case ROW_CALL_COMMIT: return worker_store_complete_commit(calls->pg, reterr);
    case ROW_CALL_ROLLBACK: worker_store_complete_rollback(calls->pg); return THOLE_OK;
    case ROW_CALL_KINDS: break;
    }
    return thole_fail(reterr, THOLE_INVALID, "call %d", (int)call->kind);
}

/* ---- with a pool ---- */

static thole_status take_connection(struct row_calls *calls, enum row_call_kind kind, thole_error *reterr)
{
    assert(calls->pg == NULL);
    if (kind == ROW_CALL_COMMIT)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "there is no transaction");
    calls->use = kind == ROW_CALL_RENEW   ? ROW_POOL_RENEWAL
                 : kind == ROW_CALL_BEGIN ? ROW_POOL_COMPLETION
                                          : ROW_POOL_OTHER;
    return row_pool_take(calls->options.pool, calls->use, calls->options.wait_ms, &calls->pg, reterr);
}

static void give_connection(struct row_calls *calls)
{
    row_pool_give(calls->options.pool, calls->use, calls->pg);
    calls->pg = NULL;
}

static thole_status row_calls_perform(struct row_calls *calls, struct row_call *call, thole_error *reterr)
{
    if (calls->options.pool == NULL)
        return row_calls_execute(calls, call, reterr);
    if (calls->pg == NULL && call->kind == ROW_CALL_ROLLBACK)
        return THOLE_OK;
    if (calls->pg == NULL)
        THOLE_TRY(take_connection(calls, call->kind, reterr));
    thole_status const status = row_calls_execute(calls, call, reterr);
    if (call->kind != ROW_CALL_BEGIN || status != THOLE_OK)
        give_connection(calls); /* an open transaction keeps it */
    return status;
}

/* 0.5 to 1 times the delay, so that workers do not all reconnect at the same time. */
static uint64_t jittered_ms(uint64_t delay_ms)
{
    uint32_t random = 0;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = 0;
    return delay_ms / 2 + random % (delay_ms / 2 + 1);
}

static void count_link(struct row_calls *calls, bool up)
{
    if (calls->options.pool == NULL) /* else it counts its own */
        metric_set(calls->cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_UP, up);
    metric_set(calls->cells, METRIC_POSTGRES_CONNECTIONS, CONNECTIONS_DOWN, !up);
}

/* After the first failure, which may be only a lost connection, the next call connects at once. */
static void row_calls_failed(struct row_calls *calls, const thole_error *error)
{
    uint64_t delay_ms = BACKOFF_MS_MIN, now_ms = clock_monotonic_ms();
    if (calls->failures == 0 || now_ms - calls->said_ms >= SAY_EVERY_MS) {
        log_line(LOG_LEVEL_WARN, "worker", "%s: %s", calls->options.name, error->text);
        calls->said_ms = now_ms;
    }
    if (calls->failures > 0) {
        for (uint32_t i = 1; i < calls->failures && delay_ms < BACKOFF_MS_MAX; i++)
            delay_ms *= 2;
        calls->gate_ms = now_ms + jittered_ms(delay_ms < BACKOFF_MS_MAX ? delay_ms : BACKOFF_MS_MAX);
    }
    calls->failures++;
    count_link(calls, false);
    metric_add(calls->cells, METRIC_POSTGRES_ERRORS, metric_error_class(error->status), 1);
}

static bool row_calls_succeeds(struct row_calls *calls, struct row_call *call, thole_error *reterr)
{
    uint64_t const since_us = clock_monotonic_us();
    thole_status const status = row_calls_perform(calls, call, reterr);
    metric_observe(calls->cells, METRIC_WORKER_STATEMENT_DURATION, call->kind,
                   clock_monotonic_us() - since_us);
    return status == THOLE_OK;
}

/* The call belongs to the caller again when it is in the caller's mailbox. */
static void row_calls_carry_out(struct row_calls *calls, struct row_call *call)
{
    assert(call->len <= call->cap && (call->away || call->kind == ROW_CALL_ROLLBACK));
    thole_error error = {.status = THOLE_OK};
    bool const gated = calls->failures > 0 && clock_monotonic_ms() < calls->gate_ms;
    call->unknown = true;
    if (!gated || call->kind == ROW_CALL_ROLLBACK) {
        call->unknown = !row_calls_succeeds(calls, call, &error);
        if (call->unknown)
            row_calls_failed(calls, &error);
    }
    if (!call->unknown && call->kind != ROW_CALL_ROLLBACK) { /* a rollback succeeds without a server */
        if (calls->failures > 0) {
            log_line(LOG_LEVEL_INFO, "worker", "%s: Postgres answers again", calls->options.name);
            count_link(calls, true);
        }
        calls->failures = 0;
    }
    for (size_t i = 0; i < call->len; i++) {
        call->rows[i].attempt = call->claims[i].attempt;
        call->rows[i].claimed_us = call->claims[i].claimed_us;
        call->rows[i].state = (enum worker_row_state)call->claims[i].state;
        call->rows[i].expired = call->claims[i].expired;
        call->rows[i].left_ms = call->claims[i].left_ms;
        call->rows[i].lost = call->claims[i].lost;
        call->rows[i].poisoned = call->claims[i].poisoned;
        call->rows[i].compared = call->claims[i].compared;
    }
}

static void row_calls_send_answer(struct row_calls *calls, struct row_call *call)
{
    if (call->kind == ROW_CALL_ROLLBACK)
        return;
    assert(call->away);
    call->away = false;
    mailbox_push(calls->options.answers, &call->mail.mail);
}

/* ---- the thread ---- */

static void *row_calls_thread_main(void *arg)
{
    struct row_calls *const calls = arg;
    struct mail *next, *mail;
    (void)pthread_setname_np(pthread_self(), "thole-rows");
    for (;;) {
        bool const filled = mailbox_wait(&calls->inbox, UINT64_MAX);
        if (!filled && mailbox_is_closed(&calls->inbox))
            return NULL;
        for (mail = mailbox_take_all(&calls->inbox); mail != NULL; mail = next) {
            next = mail->next;
            struct row_call *const call = ((struct worker_mail *)mail)->owner; /* the mail is the first
                                                                                  field */
            row_calls_carry_out(calls, call);
            (void)atomic_fetch_sub(&calls->with_thread, 1); /* before the caller can send the next one */
            row_calls_send_answer(calls, call);
        }
    }
}

/* ---- the sender's thread ---- */

static void row_calls_run(void *arg)
{
    struct row_calls *const calls = arg;
    row_calls_carry_out(calls, calls->running);
}

/* False: this thread would have to wait, for a connection or for the other thread. */
static bool runs_here(struct row_calls *calls, struct row_call *call)
{
    if (calls->options.pool != NULL || atomic_load(&calls->with_thread) > 0 || postgres_socket(calls->pg) < 0)
        return false;
    calls->running = call;
    postgres_set_wait(calls->pg, call_fiber_wait, calls->fiber);
    call_fiber_begin(calls->fiber, row_calls_run, calls);
    return true;
}

/* Takes the end of the call that runs here, and begins the next ones that wait. */
static void row_calls_go_on(struct row_calls *calls)
{
    while (!call_fiber_runs(calls->fiber)) {
        if (calls->running != NULL) {
            struct row_call *const ended = calls->running;
            calls->running = NULL;
            postgres_set_wait(calls->pg, NULL, NULL);
            row_calls_send_answer(calls, ended);
        }
        struct mail *const mail = calls->first;
        if (mail == NULL)
            return;
        calls->first = mail->next;
        if (calls->first == NULL)
            calls->end = &calls->first;
        if (runs_here(calls, ((struct worker_mail *)mail)->owner)) /* the mail is the first field */
            continue;
        (void)atomic_fetch_add(&calls->with_thread, 1);
        mailbox_push(&calls->inbox, mail);
    }
}

void row_calls_send(struct row_calls *calls, struct row_call *call)
{
    assert(call->kind < ROW_CALL_KINDS && call->len <= call->cap && !call->away);
    call->away = call->kind != ROW_CALL_ROLLBACK;
    call->mail.mail.next = NULL;
    *calls->end = &call->mail.mail;
    calls->end = &call->mail.mail.next;
    row_calls_go_on(calls);
}

struct pollfd row_calls_socket(const struct row_calls *calls, uint64_t *ret_deadline_ms)
{
    *ret_deadline_ms = call_fiber_deadline_ms(calls->fiber);
    return call_fiber_socket(calls->fiber);
}

void row_calls_continue(struct row_calls *calls, short revents)
{
    call_fiber_continue(calls->fiber, revents);
    row_calls_go_on(calls);
}

int row_calls_connection(const struct row_calls *calls)
{
    bool const own = calls->options.pool == NULL && atomic_load(&calls->with_thread) == 0;
    return own ? postgres_socket(calls->pg) : -1;
}

/* ---- create, destroy ---- */

thole_status row_calls_create(const struct row_calls_options *options, struct row_calls **ret,
                              thole_error *reterr)
{
    struct row_calls *const calls = memory_new(sizeof *calls);
    calls->options = *options;
    assert((options->pg == NULL) == (options->pool != NULL));
    calls->pg = options->pg;
    calls->cells = metrics_cells(options->metrics);
    count_link(calls, true);
    calls->end = &calls->first;
    calls->fiber = call_fiber_create();
    mailbox_init(&calls->inbox);
    if (pthread_create(&calls->thread, NULL, row_calls_thread_main, calls) != 0) {
        call_fiber_destroy(calls->fiber);
        mailbox_release(&calls->inbox);
        free(calls);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
    }
    *ret = calls;
    return THOLE_OK;
}

void row_calls_destroy(struct row_calls *calls)
{
    if (calls == NULL)
        return;
    while (call_fiber_runs(calls->fiber)) {
        call_fiber_finish(calls->fiber);
        row_calls_go_on(calls);
    }
    mailbox_close(&calls->inbox);
    (void)pthread_join(calls->thread, NULL);
    call_fiber_destroy(calls->fiber);
    if (calls->options.pool == NULL) {
        postgres_close(calls->pg);
    } else if (calls->pg != NULL) {
        worker_store_complete_rollback(calls->pg);
        give_connection(calls);
    }
    mailbox_release(&calls->inbox);
    metrics_return_cells(calls->cells);
    free(calls);
}
