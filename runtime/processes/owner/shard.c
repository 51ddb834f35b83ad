/* A shard: one thread, its partitions, one mailbox. */
#include "coro.h"
#include "crash_trial.h"
#include "deadlines.h"
#include "engine_clock.h"
#include "fatal_signals.h"
#include "inflow.h"
#include "membership.h"
#include "memory.h"
#include "read_places.h"
#include "shard_parts.h"
#include "store.h"
#include "subject.h"
#include "watchdog.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    NEEDS_SHRINK_MS = 10000,
    STACKS_KEPT = 256,
    STACKS_MAX = 30000,
    MESSAGES_WINDOW = 1024, /* in flight of one shard */
    EVENTS_WINDOW = 256,
    REJECTS_WINDOW = 256,
    APPEND_TIMEOUT_MS = 5000, /* and of messages */
    REJECT_TIMEOUT_MS = 2000,
    CLOSE_LIMIT_MS = 1000, /* time limit of handing a partition over */
};

/* ---- the machines ---- */

static void try_open(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    bool const may = owned->wanted && shard_link_up(shard) && shard->store_up && !shard->stopping &&
                     engine_clock_is_right(shard->engine->clock);
    if (!may || partition_state(owned->machine) != PARTITION_CLOSED || now_ms < owned->not_before_ms)
        return;
    shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_OPEN});
}

static bool has_name(const struct needs *needs, thole_slice name)
{
    for (size_t i = 0; i < needs->names_len; i++)
        if (thole_slice_equal(needs->names[i], name))
            return true;
    return false;
}

static void replace_needs(struct needs *needs, const thole_slice *names, size_t n)
{
    size_t bytes = n * sizeof *names;
    for (size_t i = 0; i < n; i++)
        bytes += names[i].len;
    thole_slice *copy = memory_new(bytes);
    uint8_t *at = (uint8_t *)(copy + n);
    for (size_t i = 0; i < n; at += names[i].len, i++) {
        memcpy(at, names[i].ptr, names[i].len);
        copy[i] = (thole_slice){at, names[i].len};
    }
    free(needs->names);
    *needs = (struct needs){copy, n};
}

/*
 * Which orchestrations the live instances of a partition need. A new name is sent at once; names that are not
 * needed any more are removed later, or every short instance would cause a heartbeat. A partition that is
 * handed over keeps its list: the list is the reason for the handover.
 */
static void share_needs(struct shard *shard, struct owned *owned)
{
    struct engine_host *engine = shard->engine;
    const thole_slice *names = NULL;
    if (partition_state(owned->machine) != PARTITION_OPEN)
        return;
    size_t const n = partition_live_names(owned->machine, &names);
    uint64_t const now = clock_monotonic_ms();
    struct needs *needs = &engine->needs[owned->p]; /* written by this thread only */
    bool grown = false;
    for (size_t i = 0; i < n && !grown; i++)
        grown = !has_name(needs, names[i]);
    if (!grown && (n == needs->names_len || now < owned->needs_shared_ms + NEEDS_SHRINK_MS))
        return;
    owned->needs_shared_ms = now;
    pthread_mutex_lock(&engine->needs_lock);
    replace_needs(needs, names, n);
    pthread_mutex_unlock(&engine->needs_lock);
    if (grown)
        membership_needs_changed(engine->membership);
}

/* For those who sign what there is; it never falls, since what is committed stays so. */
static void share_committed(struct shard *shard, const struct owned *owned)
{
    uint64_t const sequence = partition_committed_sequence(owned->machine);
    if (sequence > 0)
        atomic_store_explicit(&shard->engine->committed[owned->p], sequence, memory_order_relaxed);
}

/* For those who ask how the partition is. */
static void shard_share_state(struct shard *shard, const struct owned *owned)
{
    partition_states_set(shard->engine->states, owned->p,
                         &(struct partition_now){.state = partition_state(owned->machine),
                                                 .wanted = owned->wanted,
                                                 .busy = partition_open_activities(owned->machine) > 0,
                                                 .epoch = partition_epoch(owned->machine)});
}

static struct record_forms forms_read(struct engine_host *engine)
{
    return (struct record_forms){.ranges = atomic_load_explicit(&engine->ranges, memory_order_relaxed),
                                 .references =
                                     atomic_load_explicit(&engine->references, memory_order_relaxed),
                                 .lists = atomic_load_explicit(&engine->folds, memory_order_relaxed)};
}

/* Runs the machine until it has no more outputs. @p rows: they can be written now. */
static void shard_step(struct shard *shard, struct owned *owned, bool rows)
{
    bool more = true;
    partition_forms_read(owned->machine, forms_read(shard->engine));
    while (more) {
        struct partition_out out;
        inbox_give(shard, owned);
        owned->touched = false;
        owned->rows_wait = partition_flush(owned->machine, engine_clock_ms(shard->engine->clock), rows);
        while (partition_poll(owned->machine, &out))
            shard_do(shard, owned, &out);
        rows = rows && !store_is_calling(shard->store);
        more = inbox_may_give(owned);
    }
    share_committed(shard, owned);
    share_needs(shard, owned);
}

static uint64_t to_monotonic(const struct shard *shard, uint64_t wall_ms, uint64_t now_ms)
{
    uint64_t const wall_now = engine_clock_ms(shard->engine->clock);
    if (wall_ms == UINT64_MAX)
        return UINT64_MAX;
    return wall_ms <= wall_now ? now_ms : now_ms + (wall_ms - wall_now);
}

static uint64_t shard_min_ms(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Steps partitions that are due or got input; returns when to call again. */
static uint64_t step_all(struct shard *shard)
{
    bool const rows = !store_is_calling(shard->store);
    uint64_t deadline = UINT64_MAX;
    size_t held = 0, held_bytes = 0;
    for (size_t i = 0; i < shard->owned_len; i++) {
        struct owned *owned = &shard->owned[i];
        uint64_t const now = clock_monotonic_ms();
        try_open(shard, owned, now);
        if (owned->close_by_ms != 0 && now >= owned->close_by_ms) {
            owned->close_by_ms = 0;
            shard_cause(owned, CLOSED_HANDOVER_SLOW);
            shard_step_down(owned, "handing over took too long");
        }
        if (owned->touched || (owned->rows_wait && rows) ||
            partition_deadline_ms(owned->machine) <= engine_clock_ms(shard->engine->clock))
            shard_step(shard, owned, rows);
        shard_share_state(shard, owned);
        sweeper_run(shard, owned, now);
        log_keep_run(shard, owned, now);
        inbox_watch(shard, owned, now);
        rows_watch(shard, owned, now);
        shelf_run(shard, owned, now);
        queries_retry(shard, owned, now);
        deadline = shard_min_ms(deadline, shard_min_ms(sweeper_deadline_ms(owned), inbox_watch_ms(owned)));
        deadline =
            shard_min_ms(deadline, shard_min_ms(rows_watch_ms(owned), shelf_deadline_ms(shard, owned)));
        held += partition_pending(owned->machine);
        held_bytes += partition_pending_bytes(owned->machine);
        deadline = shard_min_ms(deadline, to_monotonic(shard, partition_deadline_ms(owned->machine), now));
        if (owned->close_by_ms != 0)
            deadline = shard_min_ms(deadline, owned->close_by_ms);
        if (owned->keep_ms != 0)
            deadline = shard_min_ms(deadline, owned->keep_ms);
        if (owned->queries_ms != 0)
            deadline = shard_min_ms(deadline, owned->queries_ms);
        if (owned->wanted && shard_link_up(shard) && shard->store_up &&
            engine_clock_is_right(shard->engine->clock) &&
            partition_state(owned->machine) == PARTITION_CLOSED)
            deadline = shard_min_ms(deadline, owned->not_before_ms);
        if (owned->touched)
            deadline = 0;
    }
    inbox_held(shard, held, held_bytes);
    return deadline;
}

/* ---- mails ---- */

static void shard_disown(struct owned *owned)
{
    owned->wanted = false;
    if (partition_state(owned->machine) == PARTITION_CLOSED)
        return;
    owned->close_by_ms = clock_monotonic_ms() + CLOSE_LIMIT_MS;
    shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_CLOSE});
}

static void all_step_down(struct shard *shard, enum closed_cause cause, const char *text)
{
    for (size_t i = 0; i < shard->owned_len; i++)
        if (partition_state(shard->owned[i].machine) != PARTITION_CLOSED) {
            shard_cause(&shard->owned[i], cause);
            shard_step_down(&shard->owned[i], text);
        }
}

bool shard_link_up(const struct shard *shard)
{
    return shard->own_link_up && shard->shared_link_up;
}

void shard_tell_link(struct shard *shard, bool up, bool shared)
{
    struct shard_mail *const mail = shard_mail_create(SHARD_LINK, 0, sizeof *mail);
    mail->up = up;
    mail->shared = shared;
    shard_send(shard, mail);
}

static void on_link(struct shard *shard, const struct shard_mail *mail)
{
    bool const was_up = shard_link_up(shard);
    if (mail->shared)
        shard->shared_link_up = mail->up;
    else
        shard->own_link_up = mail->up;
    bool const up = shard_link_up(shard);
    shard_count_link(shard, was_up, up);
    if (!up)
        all_step_down(shard, CLOSED_NATS_LOST, NATS_LOST_TEXT);
}

static void on_store_link(struct shard *shard, const struct shard_mail *mail)
{
    shard_count_store(shard, mail->up);
    shard->store_up = mail->up;
    if (mail->restored)
        all_step_down(shard, CLOSED_ROWS_RESTORED,
                      "the database is of another time: its rows are made right from the histories");
    else if (!mail->up)
        all_step_down(shard, CLOSED_POSTGRES_LOST, "the connection to Postgres was lost");
}

static void on_rows_removed(struct owned *owned)
{
    if (partition_state(owned->machine) == PARTITION_CLOSED)
        return; /* noticed when the partition is opened */
    log_line_of(LOG_LEVEL_WARN, "projector", LOG_PARTITION(owned->p),
                "somebody has removed rows: they are made again");
    shard_cause(owned, CLOSED_ROWS_REMOVED);
    shard_step_down(owned, "somebody has removed rows from Postgres");
}

static void shard_take_ownership(struct shard *shard, const struct shard_mail *mail)
{
    struct owned *owned = shard_owned(shard, mail->p);
    owned->wanted = true;
    owned->not_before_ms = mail->since_ms;
    owned->failures = 0;
}

static void shard_on_epoch(struct shard *shard, const struct shard_mail *mail)
{
    struct owned *const owned = shard_owned(shard, mail->p);
    if (partition_state(owned->machine) == PARTITION_OPEN && mail->epoch > partition_epoch(owned->machine))
        shard_cause(owned, CLOSED_RIVAL);
    shard_input(owned, &(struct partition_in){.kind = PARTITION_IN_RIVAL, .rival = {mail->epoch}});
}

static void shard_on_stop(struct shard *shard)
{
    shard->stopping = true;
    for (size_t i = 0; i < shard->owned_len; i++)
        shard_disown(&shard->owned[i]);
}

static void shard_handle(struct shard *shard, struct shard_mail *mail)
{
    switch (mail->kind) {
    case SHARD_STOP: shard_on_stop(shard); break;
    case SHARD_LINK: on_link(shard, mail); break;
    case SHARD_STORE_LINK: on_store_link(shard, mail); break;
    case SHARD_STORE_BACK: break;
    case SHARD_ROWS_REMOVED: on_rows_removed(shard_owned(shard, mail->p)); break;
    case SHARD_OWN: shard_take_ownership(shard, mail); break;
    case SHARD_DISOWN: shard_disown(shard_owned(shard, mail->p)); break;
    case SHARD_EPOCH: shard_on_epoch(shard, mail); break;
    case SHARD_INBOX: inbox_take(shard, mail); return;
    case SHARD_INBOX_LOST: inbox_lost(shard, mail); break;
    case SHARD_WORK_ANEW:
        for (size_t i = 0; i < shard->owned_len; i++)
            sweeper_anew(&shard->owned[i]);
        break;
    case SHARD_QUERY: query_take(shard, mail); break;
    case SHARD_ANSWER: request_answered((struct request *)mail); return; /* frees it or continues with it */
    }
    free(mail);
}

static bool all_closed(const struct shard *shard)
{
    for (size_t i = 0; i < shard->owned_len; i++)
        if (partition_state(shard->owned[i].machine) != PARTITION_CLOSED || shard->owned[i].reader != NULL)
            return false;
    return true;
}

static void shard_awake(void *arg)
{
    struct shard *const shard = arg;
    mailbox_awake(&shard->mailbox);
    pulse_begins(shard->pulse, clock_monotonic_ms());
}

/* Most mail is what this thread then reads itself, from its connections to NATS and Postgres. */
static void shard_wait_for_mail(struct shard *shard, uint64_t deadline_ms)
{
    uint64_t store_ms;
    struct pollfd also[] = {{.fd = mailbox_wakeup(&shard->mailbox), .events = POLLIN},
                            store_socket(shard->store, &store_ms)};
    bool const rests = mailbox_rest(&shard->mailbox);
    pulse_rests(shard->pulse);
    connection_read(shard->connection, also, sizeof also / sizeof also[0],
                    rests ? shard_min_ms(deadline_ms, store_ms) : 0, shard_awake, shard);
    store_continue(shard->store, also[1].revents);
}

static void shard_serve(struct shard *shard)
{
    for (;;) {
        connection_cork(shard->connection);
        for (struct mail *mail = mailbox_take_all(&shard->mailbox), *next; mail != NULL; mail = next) {
            next = mail->next;
            shard->uncounted = true;
            shard_handle(shard, (struct shard_mail *)mail); /* the node is its first member */
        }
        if (!engine_clock_is_right(shard->engine->clock))
            all_step_down(shard, CLOSED_CLOCK, "this machine's clock is wrong");
        uint64_t deadline = step_all(shard);
        uint64_t const now = clock_monotonic_ms();
        deadline = shard_min_ms(deadline, requests_run(shard, now));
        connection_uncork(shard->connection);
        store_begin(shard->store); /* after the work that clients and workers wait for */
        deadline = shard_min_ms(deadline, log_limits_rest(shard->engine->lines, now));
        deadline = shard_min_ms(deadline, shard_count_partitions(shard, now));
        if (shard->stopping && all_closed(shard))
            return;
        shard_wait_for_mail(shard, deadline);
    }
}

static void *shard_main(void *arg)
{
    struct shard *shard = arg;
    void *const stack = fatal_thread_begin();
    (void)pthread_setname_np(pthread_self(), "thole-shard");
    struct crash_thread const thread = {
        .page = shard->engine->options.crash_page, .index = shard->index, .stacks = shard->stacks};
    crash_thread_begin(&thread);
    shard_serve(shard);
    connection_leave(shard->connection);
    pulse_rests(shard->pulse);
    crash_thread_begin(NULL);
    fatal_thread_end(stack);
    return NULL;
}

static void code_begins(void *arg, const struct code_run *run)
{
    const struct shard *shard = arg;
    crash_begins(shard->place, run);
    if (shard->place == &shard->engine->options.crash_page->places[shard->index]) /* not in a forked copy */
        watchdog_stir(shard->engine->watchdog);
}

static void code_ended(void *arg)
{
    const struct shard *shard = arg;
    crash_ended(shard->place);
}

static thole_status code_attempt(void *arg, const struct code_run *run, void (*body)(void *), void *body_arg,
                                 thole_error *reterr)
{
    struct shard *shard = arg;
    struct crash_trial const trial = {.place = &shard->place,
                                      .limit_ms = crash_trial_limit_ms(shard->engine->options.turn_limit_ms)};
    return crash_trial(&trial, run, body, body_arg, reterr);
}

/* ---- start and stop ---- */

static char *copy_stream_name(struct shard *shard, const char *kind, uint32_t p)
{
    thole_status const status = stream_name(&shard->subject, shard->engine->topology.ns, kind, p, NULL);
    assert(status == THOLE_OK); /* the namespace was checked */
    (void)status;
    return memory_text(buf_cstr(&shard->subject));
}

static void shard_create_machine(struct shard *shard, struct owned *owned, uint32_t p)
{
    const struct engine_host *engine = shard->engine;
    struct partition_options options;
    partition_options_init(&options);
    options.partition = p;
    options.node = thole_slice_from(engine->options.node);
    options.orchestrations = engine->program->orchestrations;
    options.orchestrations_len = engine->program->orchestrations_len;
    options.stacks = shard->stacks;
    options.watch = &shard->watch;
    options.ns = thole_slice_from(engine->topology.ns);
    options.nonce_key = &engine->topology.nonce_key;
    options.salt_key = &engine->salt_key;
    options.payload_max = engine->options.payload_max;
    options.instance_memory_max = engine->options.instance_memory_max;
    options.parked_max = engine->options.parked_max;
    options.parked_memory_max = engine->options.parked_memory_max / engine->topology.partitions;
    options.early_memory_max = engine->options.early_memory_max / engine->topology.partitions;
    options.burst_max = engine->options.burst_max;
    options.executions_max = engine->options.executions_max;
    options.crash_limit = engine->options.crash_limit;
    options.early_event_ms = engine->options.early_event_ms;
    options.quarantine_ms = engine->options.quarantine_ms;
    options.deleted_keep_ms = engine->options.test_deleted_keep_ms > 0 ? engine->options.test_deleted_keep_ms
                                                                       : engine->options.deleted_keep_ms;
    options.events = (enum events_out)engine->options.events;
    options.record_max = connection_max_payload(engine->connection) - RECORD_HEADROOM;
    owned->p = p;
    owned->clock = engine->clock;
    owned->machine = partition_create(&options);
    owned->hist_stream = copy_stream_name(shard, "HIST", p);
    owned->in_stream = copy_stream_name(shard, "IN", p);
}

static void create_machines(struct shard *shard)
{
    const struct engine_host *engine = shard->engine;
    uint32_t const partitions = engine->topology.partitions;
    shard->stacks = stack_pool_create(STACKS_KEPT, STACKS_MAX / engine->shards_len);
    shard->owned = memory_array(partitions / engine->shards_len + 1, sizeof *shard->owned);
    for (uint32_t p = shard->index; p < partitions; p += (uint32_t)engine->shards_len) {
        struct owned *owned = &shard->owned[shard->owned_len++];
        shard_create_machine(shard, owned, p);
    }
}

static thole_status open_windows(struct shard *shard, thole_error *reterr)
{
    const size_t limits[WINDOWS] = {[WINDOW_APPENDS] = shard->owned_len * PARTITION_WINDOW_MAX +
                                                       1, /* the maximum that partitions may ask for */
                                    [WINDOW_MESSAGES] = MESSAGES_WINDOW,
                                    [WINDOW_READS] = INFLOW_READS,
                                    [WINDOW_EVENTS] = EVENTS_WINDOW,
                                    [WINDOW_REJECTS] = REJECTS_WINDOW};
    for (size_t i = 0; i < WINDOWS; i++) {
        struct window *const window = &shard->windows[i];
        window->limit = limits[i];
        window->waits = i != WINDOW_APPENDS;
        THOLE_TRY(requests_open(shard->connection, window->limit,
                                i == WINDOW_REJECTS ? REJECT_TIMEOUT_MS : APPEND_TIMEOUT_MS, request_on_reply,
                                shard, &window->requests, reterr));
    }
    return THOLE_OK;
}

void shard_init(struct engine_host *engine, uint32_t index, struct shard *shard)
{
    shard->engine = engine;
    shard->index = index;
    shard->rules = request_rules;
    shard->place = &engine->options.crash_page->places[shard->index];
    shard->watch = (struct code_watch){
        .begins = code_begins, .ended = code_ended, .attempt = code_attempt, .site = code_site, .arg = shard};
    shard->read_places = read_places_create();
    buf_init(&shard->subject, SUBJECT_BYTES_MAX);
    buf_init(&shard->body, RECORD_BYTES_MAX);
    pthread_mutex_init(&shard->backlog.lock, NULL);
    pthread_cond_init(&shard->backlog.room, NULL);
    mailbox_init(&shard->mailbox);
}

thole_status shard_start(struct shard *shard, thole_error *reterr)
{
    THOLE_TRY(mailbox_open_wakeup(&shard->mailbox, reterr));
    shard_count_start(shard);
    shard->deadlines = deadlines_create(shard->engine);
    create_machines(shard);
    shard->inflow = inflow_create();
    THOLE_TRY(open_windows(shard, reterr));
    THOLE_TRY(store_start(shard, &shard->store, reterr));
    shard->running = pthread_create(&shard->thread, NULL, shard_main, shard) == 0;
    return shard->running ? THOLE_OK : thole_fail(reterr, THOLE_NOMEM, "cannot start a shard's thread");
}

/* Drops a request whose answer comes after the thread has ended. */
static void drop_answer(struct request *request)
{
    if (request->kind == REQ_OPEN_INBOX)
        inbox_reader_close(request->inbox.reader);
    request_destroy(request);
}

static void free_mails(struct shard *shard)
{
    for (struct mail *node = mailbox_take_all(&shard->mailbox), *next; node != NULL; node = next) {
        struct shard_mail *const mail = (struct shard_mail *)node;
        next = node->next;
        if (mail->kind == SHARD_ANSWER)
            drop_answer((struct request *)mail);
        else
            free(mail);
    }
}

void shard_stop(struct shard *shard)
{
    if (shard->running) {
        struct shard_mail *mail = shard_mail_create(SHARD_STOP, 0, sizeof *mail);
        shard_send(shard, mail);
        pthread_join(shard->thread, NULL);
    }
    store_stop(shard->store);
    deadlines_destroy(shard->deadlines);
    for (size_t i = 0; i < WINDOWS; i++)
        requests_close(shard->windows[i].requests);
}

void shard_release(struct shard *shard)
{
    requests_forget(shard);
    free_mails(shard);
    for (size_t i = 0; i < shard->owned_len; i++) {
        queries_close(shard, &shard->owned[i]);
        inbox_drop(shard, &shard->owned[i]);
        partition_destroy(shard->owned[i].machine);
        free(shard->owned[i].hist_stream);
        free(shard->owned[i].in_stream);
    }
    free(shard->owned);
    read_places_destroy(shard->read_places);
    stack_pool_destroy(shard->stacks);
    connection_close(shard->connection);
    inflow_destroy(shard->inflow);
    mailbox_release(&shard->mailbox);
    buf_release(&shard->subject);
    buf_release(&shard->body);
    pthread_mutex_destroy(&shard->backlog.lock);
    pthread_cond_destroy(&shard->backlog.room);
}
