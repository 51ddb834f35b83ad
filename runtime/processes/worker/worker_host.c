/* Starting and stopping the worker role. */
#include "worker_host.h"
#include "clock.h"
#include "crash_reporter.h"
#include "inbox_prefix.h"
#include "memory.h"
#include "queue_wish.h"
#include "worker_parts.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 5000,
    CALL_TIMEOUT_MS_MIN = 500, /* of statements and publishes: a sixth of the lease within these bounds */
    CALL_TIMEOUT_MS_MAX = 5000,
    /* a lease within these bounds: a worker that is frozen in a completion */
    IDLE_IN_TRANSACTION_MS_MIN = 1000,
    IDLE_IN_TRANSACTION_MS_MAX = 10000, /* locks its rows no longer */
    STOP_GRACE_MS = 2000,
    PUSH_MEMORY_MAX = 64 * 1024,
    PAUSE_STEP_MS = 50,
    PAUSE_MS_MIN = 200,
    PAUSE_MS_MAX = 1000,
    SAY_EVERY_MS = 10000,
    EXTRA_COMPLETIONS = 64,
    ABANDONED_MAX = 1024, /* abandoned threads that are replaced */
};

/* ---- waiting for servers and the namespace ---- */

struct patience {
    const struct stop_check *stop;
    uint64_t said_ms, pause_ms;
};

static void pause_a_while(struct patience *patience)
{
    uint64_t const step_ms = PAUSE_STEP_MS;
    struct timespec const step = {.tv_nsec = (long)step_ms * 1000000};
    patience->pause_ms = patience->pause_ms == 0 ? PAUSE_MS_MIN : patience->pause_ms * 2;
    if (patience->pause_ms > PAUSE_MS_MAX)
        patience->pause_ms = PAUSE_MS_MAX;
    for (uint64_t t = 0; t < patience->pause_ms && !stop_is_requested(patience->stop); t += step_ms)
        (void)nanosleep(&step, NULL);
}

/* THOLE_OK: an outage, or not set up yet; try again. THOLE_CANCELLED: stop requested. Else the refusal.
 */
static thole_status worker_host_may_retry(struct patience *patience, thole_status status,
                                          const thole_error *error)
{
    uint64_t const now_ms = clock_monotonic_ms();
    if (status != THOLE_UNAVAILABLE && status != THOLE_TIMEOUT && status != THOLE_NOT_FOUND)
        return status;
    if (patience->said_ms == 0 || now_ms - patience->said_ms >= SAY_EVERY_MS) {
        log_line(LOG_LEVEL_WARN, "worker", "waiting: %s", error->text);
        patience->said_ms = now_ms;
    }
    pause_a_while(patience);
    return stop_is_requested(patience->stop) ? THOLE_CANCELLED : THOLE_OK;
}

typedef thole_status step_fn(struct worker_host *host, thole_error *reterr);

static step_fn open_claims, open_completions;

/* Until an engine has set the namespace up there is nothing to find, which is no failure. */
static void worker_host_count_failed_step(struct worker_host *host, step_fn *step, thole_status status)
{
    if (step == open_claims || step == open_completions)
        metric_count(host->nats.cells, METRIC_POSTGRES_ERRORS, metric_error_class(status), 1);
    else if (status != THOLE_NOT_FOUND)
        nats_watch_failed(&host->nats, status);
}

static thole_status worker_host_until_done(struct worker_host *host, step_fn *step,
                                           const struct stop_check *stop, thole_error *reterr)
{
    struct patience patience = {.stop = stop};
    thole_error error = {.status = THOLE_OK};
    thole_status status;
    while ((status = step(host, &error)) != THOLE_OK) {
        worker_host_count_failed_step(host, step, status);
        status = worker_host_may_retry(&patience, status, &error);
        if (status != THOLE_OK)
            return thole_fail(reterr, status, "%s", error.text);
    }
    return THOLE_OK;
}

/* ---- callbacks of streams: they only send mail ---- */

static void worker_host_look_at_queue(void *arg)
{
    const struct worker_host *const host = arg;
    queue_keeper_look(host->keeper);
}

static void worker_host_on_state(void *arg, bool connected, uint64_t epoch)
{
    struct worker_host *const host = arg;
    (void)epoch;
    nats_watch_state(&host->nats, connected);
    worker_loop_state(host); /* the loop reads the current state itself */
    worker_host_look_at_queue(host);
}

static void worker_host_on_trouble(void *arg, enum connection_trouble trouble, const thole_error *error)
{
    struct worker_host *const host = arg;
    nats_watch_trouble(&host->nats, trouble, error);
}

static void on_work(void *arg, struct work_message *message)
{
    struct worker_host *const host = arg;
    struct thole_activity *const act = activity_create(message, clock_monotonic_ms());
    (void)atomic_fetch_add(&host->arriving, 1);
    mailbox_push(&host->inbox, &act->delivered.mail);
}

static const struct log_kind lines[WORKER_LINES] = {
    [WORKER_LINE_MALFORMED] = {LOG_LEVEL_WARN, "worker", "malformed_work",
                               "malformed messages were removed from the queue", 1},
    [WORKER_LINE_FORGED] = {LOG_LEVEL_WARN, "worker", "forged_work",
                            "messages were removed from the queue that no engine has written", 1},
    [WORKER_LINE_BAD_PUSH] = {LOG_LEVEL_WARN, "worker", "malformed_pushes",
                              "malformed cancel pushes were ignored", 1},
    [WORKER_LINE_UNPROVEN] = {LOG_LEVEL_WARN, "worker", "unproven_pushes",
                              "cancel pushes were ignored that no engine has sent", 1},
};

static void on_bad_work(void *arg, struct work_message *message, const char *text)
{
    struct worker_host *const host = arg;
    log_limits_line(host->lines, clock_monotonic_ms(), WORKER_LINE_MALFORMED, NULL,
                    "a malformed message was removed from queue %s: %s", host->options.queue, text);
    if (work_message_signal(host->connection, message, WORK_TERM, NULL) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "it will come back");
    work_message_destroy(message);
    worker_loop_state(host);
}

static void on_cancel(void *arg, const struct delivery *delivery)
{
    struct worker_host *const host = arg;
    if (host->options.suppress_push)
        return;
    struct push_mail *const push = memory_new(sizeof *push);
    push->mail = (struct worker_mail){.kind = WORKER_MAIL_PUSH, .owner = push};
    arena_init(&push->arena, PUSH_MEMORY_MAX);
    thole_error error = {.status = THOLE_OK};
    if (cancel_notice_parse(delivery, &push->arena, &push->notice, &error) != THOLE_OK)
        log_limits_line(host->lines, clock_monotonic_ms(), WORKER_LINE_BAD_PUSH, NULL,
                        "a cancel push was ignored: %s", error.text);
    else if (mailbox_offer(&host->inbox, &push->mail.mail, WORKER_PUSHES_MAX))
        return;
    arena_release(&push->arena);
    free(push);
}

static void worker_host_on_question(void *arg, const struct delivery *delivery)
{
    const struct worker_host *const host = arg;
    struct roll_answer const answer = {.worker = host->incarnation_slice,
                                       .queue = thole_slice_from(host->options.queue),
                                       .slots = host->options.slots,
                                       .activities = host->activity_names,
                                       .activities_len = host->program->activities_len};
    thole_error error = {.status = THOLE_OK};
    if (roll_call_answer(host->connection, delivery, &answer, &error) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "a question was not answered: %s", error.text);
}

/* ---- steps of the start ---- */

/* Of a statement, and of the wait for a connection. */
static uint64_t call_timeout_ms(const struct worker_host *host)
{
    uint64_t const sixth_ms = host->lease_ms / 6;
    if (host->lease_ms == 0 || sixth_ms > CALL_TIMEOUT_MS_MAX)
        return CALL_TIMEOUT_MS_MAX;
    return sixth_ms > CALL_TIMEOUT_MS_MIN ? sixth_ms : CALL_TIMEOUT_MS_MIN;
}

static uint64_t idle_in_transaction_ms(const struct worker_host *host)
{
    if (host->lease_ms < IDLE_IN_TRANSACTION_MS_MIN)
        return IDLE_IN_TRANSACTION_MS_MIN;
    return host->lease_ms < IDLE_IN_TRANSACTION_MS_MAX ? host->lease_ms : IDLE_IN_TRANSACTION_MS_MAX;
}

static thole_status worker_host_open_connection(struct worker_host *host, thole_error *reterr)
{
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = host->options.ns,
                                      .role = host->options.inbox_role != NULL ? host->options.inbox_role
                                                                               : "worker",
                                      .queue = host->options.queue};
    struct connection_options const options = {
        .url = host->options.nats_url,
        .creds = host->options.nats_creds,
        .ca = host->options.nats_ca,
        .cert = host->options.nats_cert,
        .key = host->options.nats_key,
        .server_name = host->options.nats_server_name,
        .inbox = inbox_prefix_or_own(host->options.nats_inbox, &owner, inbox),
        .api_prefix = host->options.nats_api_prefix,
        .name = host->incarnation,
        .connect_timeout_ms = CONNECT_TIMEOUT_MS,
        .request_timeout_ms = CONNECT_TIMEOUT_MS,
        .on_state = worker_host_on_state,
        .on_trouble = worker_host_on_trouble,
        .arg = host};
    return connection_open(&options, &host->connection, reterr);
}

static thole_status read_topology(struct worker_host *host, thole_error *reterr)
{
    THOLE_TRY(topology_read(host->connection, host->options.ns, &host->topology, reterr));
    THOLE_TRY(topology_check_payload(&host->topology, host->options.payload_max, reterr));
    host->options.payload_max = host->topology.payload_max;
    return THOLE_OK;
}

/* The lease is a property of the queue. */
static thole_status check_renewals(const struct worker_host *host, thole_error *reterr)
{
    if (host->options.renew_every_ms <= host->lease_ms / 2)
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_INVALID,
        "--renew-every %llums is more than half of the lease of queue %s, %llums: one renewal that "
        "fails would cost what runs; leave it out for a third of the lease",
        (unsigned long long)host->options.renew_every_ms, host->options.queue,
        (unsigned long long)host->lease_ms);
}

static thole_status wish_queue(struct worker_host *host, thole_error *reterr)
{
    THOLE_TRY(queue_wish(host->connection, host->options.ns, thole_slice_from(host->options.queue),
                         host->options.lease_ms, &host->lease_ms, NULL, reterr));
    return check_renewals(host, reterr);
}

static thole_status start_keeper(struct worker_host *host, thole_error *reterr)
{
    queue_keeper_count(host->keeper, metrics_cells(host->options.metrics));
    queue_keeper_listen(host->keeper, host->served, host->incarnation_slice);
    return queue_keeper_start(host->keeper, host->connection, host->options.ns, host->options.queue,
                              host->lease_ms, reterr);
}

/* Also checks that the tables exist, so that nothing is fetched that could not be claimed. */
static thole_status open_rows(struct worker_host *host, const char *name, struct row_calls **ret,
                              thole_error *reterr)
{
    struct postgres_options const options = {.conninfo = host->options.postgres,
                                             .ns = host->options.ns,
                                             .application = "thole-worker",
                                             .connect_timeout_ms = call_timeout_ms(host),
                                             .statement_timeout_ms = call_timeout_ms(host),
                                             .idle_in_transaction_ms = idle_in_transaction_ms(host)};
    struct claim nobody = {.key = {.instance = THOLE_STR("-"), .try_number = 1}};
    struct row_pool *const pool = host->options.row_pool;
    struct postgres *pg = NULL;
    THOLE_TRY(pool == NULL ? postgres_open(&options, &pg, reterr)
                           : row_pool_take(pool, ROW_POOL_OTHER, call_timeout_ms(host), &pg, reterr));
    thole_status status = worker_store_renew(pg, host->incarnation_slice, &nobody, 1, reterr);
    if (pool != NULL) {
        row_pool_give(pool, ROW_POOL_OTHER, pg);
        pg = NULL;
    }
    struct row_calls_options const calls = {
        .name = name,
        .pg = pg,
        .pool = pool,
        .wait_ms = call_timeout_ms(host),
        .worker = host->incarnation_slice,
        .policy = {.candidate_after = worker_candidate_after(host->options.poison_after),
                   .strikes_max = worker_strikes_max(host->options.poison_after)},
        .answers = &host->inbox,
        .metrics = host->options.metrics};
    if (status == THOLE_OK)
        status = row_calls_create(&calls, ret, reterr);
    if (status != THOLE_OK)
        postgres_close(pg);
    return status;
}

static thole_status open_claims(struct worker_host *host, thole_error *reterr)
{
    return open_rows(host, "claims and renewals", &host->claims, reterr);
}

static thole_status open_completions(struct worker_host *host, thole_error *reterr)
{
    return open_rows(host, "completions", &host->completions, reterr);
}

static thole_status open_requests(struct worker_host *host, thole_error *reterr)
{
    return requests_open(host->connection, WORKER_CLAIM_MAX, call_timeout_ms(host), worker_result_done, host,
                         &host->requests, reterr);
}

/* Before anything is pulled: a cancellation between claim and start must not be missed. */
static thole_status worker_host_subscribe(struct worker_host *host, thole_error *reterr)
{
    char subject[THOLE_NAME_BYTES_MAX + 32];
    /* the namespace was checked */
    (void)snprintf(subject, sizeof subject, "thole.%s.cancel.>", host->options.ns);
    if (host->cancels == NULL)
        THOLE_TRY(connection_subscribe(host->connection, subject, on_cancel, host, &host->cancels, reterr));
    return connection_flush(host->connection, reterr);
}

/* Best effort: answers the question which activities the worker runs. */
static thole_status answer_questions(struct worker_host *host, thole_error *reterr)
{
    struct buf subject;
    size_t const n = host->program->activities_len;
    host->activity_names = memory_array(n + 1, sizeof *host->activity_names);
    for (size_t i = 0; i < n; i++)
        host->activity_names[i] = thole_slice_from(host->program->activities[i].name);
    buf_init(&subject, THOLE_NAME_BYTES_MAX + 32);
    thole_status status = roll_call_subject(&subject, host->options.ns, reterr);
    if (status == THOLE_OK)
        status = connection_subscribe(host->connection, buf_cstr(&subject), worker_host_on_question, host,
                                      &host->questions, reterr);
    buf_release(&subject);
    return status;
}

static thole_status worker_host_open_puller(struct worker_host *host, thole_error *reterr)
{
    return puller_open(host->connection, host->options.ns, thole_slice_from(host->options.queue), on_work,
                       on_bad_work, worker_host_look_at_queue, host, &host->puller, reterr);
}

static void worker_host_create_machine(struct worker_host *host)
{
    struct worker_options options;
    worker_options_init(&options);
    options.slots = host->options.slots;
    options.completions_max = host->options.slots + EXTRA_COMPLETIONS;
    options.resumed_max = (uint32_t)worker_resumed_len(host);
    options.lease_ms = host->lease_ms;
    options.renew_ms = host->options.renew_every_ms;
    options.grace_ms = host->options.grace_ms;
    options.poison_after = host->options.poison_after;
    options.silence_ms = host->options.remote != NULL ? host->lease_ms : 0;
    options.stop_grace_ms = host->options.grace_ms < STOP_GRACE_MS ? host->options.grace_ms : STOP_GRACE_MS;
    host->machine = worker_create(&options);
    host->slow = memory_array(host->program->activities_len + 1, sizeof *host->slow);
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++) {
        bool const bare = kind == ROW_CALL_COMMIT || kind == ROW_CALL_ROLLBACK;
        row_call_init(&host->calls[kind], (enum row_call_kind)kind,
                      bare ? 0 : worker_capacity(host->machine));
    }
}

static thole_status open_processes(struct worker_host *host, thole_error *reterr)
{
    if (!forkserver_is_needed(host->program))
        return THOLE_OK;
    if (host->options.forkserver == NULL)
        return thole_fail(reterr, THOLE_INVALID, "there are activities for processes, and no forkserver");
    host->processes = process_pool_create(host->options.forkserver, host->program, host->options.slots);
    return THOLE_OK;
}

static thole_status start_loop(struct worker_host *host, thole_error *reterr)
{
    host->cells = metrics_cells(host->options.metrics);
    host->pulse = metrics_pulse(host->options.metrics, "worker", WORKER_STUCK_MS);
    if (pthread_create(&host->loop, NULL, worker_loop_main, host) != 0)
        return thole_fail(reterr, THOLE_NOMEM, "cannot start a thread");
    worker_loop_state(host);
    return THOLE_OK;
}

static thole_status connect_all(struct worker_host *host, const struct stop_check *stop, thole_error *reterr)
{
    static step_fn *const steps[] = {
        worker_host_open_connection, read_topology, wish_queue, open_claims, open_completions, open_requests,
        worker_host_subscribe};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        THOLE_TRY(worker_host_until_done(host, steps[i], stop, reterr));
    worker_host_create_machine(host);
    THOLE_TRY(open_processes(host, reterr));
    if (host->options.remote == NULL)
        THOLE_TRY(handlers_create(host->options.slots, ABANDONED_MAX, &host->inbox, &host->handlers, reterr));
    THOLE_TRY(start_keeper(host, reterr));
    THOLE_TRY(worker_host_until_done(host, worker_host_open_puller, stop, reterr));
    THOLE_TRY(answer_questions(host, reterr));
    THOLE_TRY(worker_resume(host, reterr));
    return start_loop(host, reterr);
}

static thole_status worker_host_check_options(const struct host_options *options, thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(options->ns), "namespace", reterr));
    THOLE_TRY(name_check(thole_slice_from(options->queue), "queue", reterr));
    THOLE_TRY(name_check(thole_slice_from(options->node), "node", reterr));
    if (options->slots == 0)
        return thole_fail(reterr, THOLE_INVALID, "--slots must be at least 1");
    return THOLE_OK;
}

static thole_status make_incarnation(struct worker_host *host, thole_error *reterr)
{
    const struct remote_handlers *const remote = host->options.remote;
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNSUPPORTED, "the system gives no random numbers");
    if (remote != NULL)
        (void)snprintf(host->incarnation, sizeof host->incarnation, "%s-%.16s", host->options.node,
                       remote->suffix);
    else
        (void)snprintf(host->incarnation, sizeof host->incarnation, "%s-%016" PRIx64, host->options.node,
                       random);
    host->incarnation_slice = thole_slice_from(host->incarnation);
    if (remote != NULL && remote->host[0] != '\0')
        (void)snprintf(host->host_name, sizeof host->host_name, "%s", remote->host);
    else
        (void)gethostname(host->host_name, sizeof host->host_name - 1); /* cut is fine */
    return THOLE_OK;
}

static void worker_host_release(struct worker_host *host)
{
    puller_close(host->puller);
    queue_keeper_stop(host->keeper);
    subscription_close(host->cancels);
    subscription_close(host->questions);
    requests_close(host->requests);
    row_calls_destroy(host->claims);
    row_calls_destroy(host->completions);
    handlers_destroy(host->handlers);
    process_pool_destroy(host->processes);
    worker_loop_give_up(host);
    worker_loop_drain(host);
    arena_release(&host->resumed_details);
    free(host->resumed);
    if (host->connection != NULL && connection_epoch(host->connection) != 0 &&
        connection_flush(host->connection, NULL) != THOLE_OK)
        log_line(LOG_LEVEL_DEBUG, "worker", "last signals may be lost");
    connection_close(host->connection);
    nats_watch_end(&host->nats);
    worker_loop_drain(host);
    worker_destroy(host->machine);
    for (int kind = 0; kind < ROW_CALL_KINDS; kind++)
        row_call_release(&host->calls[kind]);
    queue_keeper_destroy(host->keeper);
    served_names_destroy(host->served);
    mailbox_release(&host->inbox);
    log_limits_say_totals(host->lines, "worker");
    log_limits_destroy(host->lines);
    free(host->activity_names);
    free(host->slow);
    metrics_return_cells(host->cells);
    metrics_return_pulse(host->pulse);
    free(host);
}

thole_status worker_host_start(const struct host_options *options, const thole_program *program,
                               const struct stop_check *stop, struct worker_host **ret, thole_error *reterr)
{
    THOLE_TRY(worker_host_check_options(options, reterr));
    struct worker_host *const host = memory_new(sizeof *host);
    mailbox_init(&host->inbox);
    host->lines = log_limits_create(lines, WORKER_LINES, 0);
    host->keeper = queue_keeper_create();
    host->served = served_names_create();
    /* the connection of a gateway says what happens to those of its sessions */
    nats_watch_begin(&host->nats, "worker", options->remote == NULL ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
                     options->metrics);
    host->options = *options;
    host->program = program;
    host->state = (struct worker_mail){.kind = WORKER_MAIL_STATE, .owner = host};
    host->stop = (struct worker_mail){.kind = WORKER_MAIL_STOP, .owner = host};
    thole_status status = mailbox_open_wakeup(&host->inbox, reterr);
    if (status == THOLE_OK)
        status = make_incarnation(host, reterr);
    if (status == THOLE_OK) {
        crash_reporter_name(host->options.crash_reporter, host->incarnation);
        status = connect_all(host, stop, reterr);
    }
    if (status != THOLE_OK) {
        worker_host_release(host);
        return status;
    }
    log_line(LOG_LEVEL_INFO, "worker", "serves queue %s with %u slots, lease %" PRIu64 " ms, as %s",
             options->queue, options->slots, host->lease_ms, host->incarnation);
    *ret = host;
    return THOLE_OK;
}

/* Only the first one counts. */
static void send_stop(struct worker_host *host)
{
    if (!atomic_exchange(&host->stop_sent, true))
        mailbox_push(&host->inbox, &host->stop.mail);
}

void worker_host_stop_within(struct worker_host *host, uint64_t limit_ms)
{
    host->options.stop_limit_ms = limit_ms; /* the loop reads it when it takes the mail */
    send_stop(host);
}

void worker_host_stop(struct worker_host *host)
{
    if (host == NULL)
        return;
    send_stop(host);
    (void)pthread_join(host->loop, NULL);
    worker_host_release(host);
}

void worker_host_returned(struct worker_host *host, struct thole_activity *act,
                          const struct remote_return *returned)
{
    act->returned = returned;
    act->unknown = returned->unknown;
    activity_run(act);
    act->returned = NULL;
    mailbox_push(&host->inbox, &act->finished.mail);
}

void worker_host_rests(struct worker_host *host)
{
    atomic_store(&host->rests, true);
    worker_loop_state(host);
}

void worker_host_wants(struct worker_host *host)
{
    atomic_store(&host->rests, false);
    worker_loop_state(host);
}

struct connection *worker_host_connection(const struct worker_host *host)
{
    return host->connection;
}

void worker_host_heard(struct worker_host *host)
{
    atomic_store(&host->heard, true);
}

/* Ends the leases and reports the claims as lost. Best effort: otherwise they end by themselves. */
static void worker_host_report_death(const struct worker_host *host, const char *report)
{
    struct postgres_options const options = {.conninfo = host->options.postgres,
                                             .ns = host->options.ns,
                                             .application = "thole-reporter",
                                             .connect_timeout_ms = call_timeout_ms(host),
                                             .statement_timeout_ms = call_timeout_ms(host)};
    struct worker_death const death = {.worker = host->incarnation_slice,
                                       .report = thole_slice_from(report),
                                       .candidate_after = worker_candidate_after(host->options.poison_after)};
    thole_error error = {.status = THOLE_OK};
    struct postgres *pg = NULL;
    size_t rows = 0;
    thole_status status = postgres_open(&options, &pg, &error);
    if (status == THOLE_OK)
        status = worker_store_died(pg, &death, &rows, &error);
    postgres_close(pg);
    if (status == THOLE_OK)
        log_line(LOG_LEVEL_ERROR, "worker", "%s died, with %zu activities: %s", host->incarnation, rows,
                 report);
    else
        log_line(LOG_LEVEL_WARN, "worker", "%s died: %s; its leases run out, they could not be ended: %s",
                 host->incarnation, report, error.text);
}

void worker_host_died(struct worker_host *host, const char *report)
{
    atomic_store(&host->dead, true);
    worker_loop_state(host); /* wakes it */
    (void)pthread_join(host->loop, NULL);
    row_calls_destroy(host->claims); /* a renewal after the end of a lease would take it back */
    row_calls_destroy(host->completions);
    host->claims = host->completions = NULL;
    worker_host_report_death(host, report);
    worker_host_release(host);
}

thole_slice worker_host_name(const struct worker_host *host)
{
    return host->incarnation_slice;
}

uint64_t worker_host_lease_ms(const struct worker_host *host)
{
    return host->lease_ms;
}

uint64_t worker_host_payload_max(const struct worker_host *host)
{
    return host->options.payload_max;
}
