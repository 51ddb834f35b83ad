/*
 * Orphans: an activity whose row no worker claims or renews, because its message is missing, is queued again.
 * This is rare. A message can be removed while its row exists, since acknowledgements are not fences: a late
 * one removes a redelivered message; and a database that lost its last transactions has no row for a worker,
 * which then acknowledges the message. A row has the time of its last claim or renewal, by the database's
 * clock. The database is asked when the partition opens, and then when the next row can become an orphan;
 * only while the partition has open activities.
 *
 * Deadlines: a try is ended when its deadline passes, whether or not a worker is alive. The next possible
 * deadline is known from projected rows and, when the partition opens, from the database; the database is
 * asked only then. A living worker ends its try itself, and has half a second to do so.
 */
#include "log_work.h"
#include "reader.h"
#include "shard_parts.h"
#include "subject.h"
#include <assert.h>

enum {
    DEADLINE_SLACK_MS = 500,
    ROUNDING_MS = 20,
    SWEEPS_MAX = 4,  /* in the time after which a row is an orphan: of very many rows one always is */
    AGAIN_MS = 1000, /* after a failed one */
    ORPHANS_MAX = 1000,
};

/* ---- when to ask ---- */

void sweeper_opened(struct owned *owned)
{
    owned->sweeps.orphans_ms = clock_monotonic_ms();
}

void sweeper_anew(struct owned *owned)
{
    owned->sweeps.anew_ms = clock_monotonic_ms();
    owned->sweeps.orphans_ms = owned->sweeps.anew_ms;
}

/* After WORK was made again each row that is older has lost its message. */
static uint64_t orphan_age(const struct shard *shard, const struct sweeps *sweeps, uint64_t now_ms)
{
    uint64_t const age = shard->engine->options.sweep_ms;
    return sweeps->anew_ms != 0 && now_ms - sweeps->anew_ms < age ? now_ms - sweeps->anew_ms : age;
}

static void sweep_orphans(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    struct sweeps *const sweeps = &owned->sweeps;
    uint64_t const age = shard->engine->options.sweep_ms;
    if (partition_open_activities(owned->machine) == 0) {
        sweeps->orphans_ms = 0;
        sweeps->waiting_ms = 0;
        sweeps->anew_ms = 0;
        return;
    }
    if (sweeps->orphans_ms == 0)
        sweeps->orphans_ms = now_ms + age;
    if (sweeps->sweeping || now_ms < sweeps->orphans_ms)
        return;
    struct request *request = request_create(REQ_FIND_ORPHANS, shard, owned);
    request->orphans.owner = request_owner(owned);
    request->orphans.age_ms = orphan_age(shard, sweeps, now_ms);
    sweeps->sweeping = true;
    request_submit(request);
}

static void sweep_deadlines(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    struct sweeps *const sweeps = &owned->sweeps;
    if (sweeps->expire_ms == 0 || sweeps->expiring || now_ms < sweeps->expire_ms)
        return;
    struct request *request = request_create(REQ_EXPIRE, shard, owned);
    request->expiry.owner = request_owner(owned);
    request->expiry.slack_ms = DEADLINE_SLACK_MS;
    sweeps->expiring = true;
    sweeps->expire_ms = 0;
    request_submit(request);
}

void sweeper_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    enum partition_state const state = partition_state(owned->machine);
    if (state != PARTITION_OPEN) {
        owned->sweeps.orphans_ms = 0;
        owned->sweeps.waiting_ms = 0;
    }
    if (state == PARTITION_CLOSED)
        owned->sweeps.expire_ms = 0; /* set again when it is opened */
    if (state != PARTITION_OPEN)
        return;
    sweep_orphans(shard, owned, now_ms);
    sweep_deadlines(shard, owned, now_ms);
}

uint64_t sweeper_deadline_ms(const struct owned *owned)
{
    const struct sweeps *const sweeps = &owned->sweeps;
    uint64_t const sweep_ms = sweeps->orphans_ms == 0 || sweeps->sweeping ? UINT64_MAX : sweeps->orphans_ms;
    if (sweeps->expire_ms == 0 || sweeps->expiring || partition_state(owned->machine) != PARTITION_OPEN)
        return sweep_ms;
    return sweeps->expire_ms < sweep_ms ? sweeps->expire_ms : sweep_ms;
}

/* Logs a failure; it is retried. */
static void say_failed(const struct owned *owned, const struct request *request)
{
    if (request->status != THOLE_OK && request_is_current(owned, request))
        log_line_of(LOG_LEVEL_WARN, "sweeper", LOG_PARTITION(owned->p),
                    "cannot look for lost activities and late tries: %s", request_error_text(request));
}

/* ---- orphans: rows that no worker claims or renews ---- */

thole_status orphans_store(struct postgres *pg, struct request *request)
{
    struct asked_orphans *const asked = &request->orphans;
    THOLE_TRY(projector_store_orphans(pg, &asked->owner, asked->age_ms, ORPHANS_MAX, &request->arena,
                                      &asked->rows, &asked->rows_len, &asked->next_in_ms,
                                      request_error(request)));
    if (request->shard->cells == NULL) /* nobody reads it */
        return THOLE_OK;
    return projector_store_waiting(pg, request->mail.p, &asked->waiting_ms, request_error(request));
}

static void plan_next(struct owned *owned, const struct request *request)
{
    uint64_t const age = request->shard->engine->options.sweep_ms;
    uint64_t pause_ms = request->orphans.next_in_ms < age ? request->orphans.next_in_ms + ROUNDING_MS : age;
    if (pause_ms < age / SWEEPS_MAX)
        pause_ms = age / SWEEPS_MAX;
    if (request->status != THOLE_OK)
        pause_ms = AGAIN_MS;
    else if (owned->sweeps.anew_ms != 0 && request->orphans.rows_len == ORPHANS_MAX)
        pause_ms = 0; /* there may be more of them */
    else if (request->orphans.age_ms < age)
        owned->sweeps.anew_ms = 0;
    owned->sweeps.orphans_ms = clock_monotonic_ms() + pause_ms;
}

static void keep_item(struct request *request, const struct batch_activity *activity, thole_slice input,
                      const struct trace *trace)
{
    request->work.item = (struct work_item){
        .queue = request_keep(request, activity->queue),
        .instance = request_keep(request, activity->instance),
        .activity = request_keep(request, activity->activity),
        .input = request_keep(request, input),
        .nonce = work_nonce(request, activity->instance, activity->execution, activity->activity_id),
        .trace = {request_keep(request, trace->parent), request_keep(request, trace->list)},
        .execution = activity->execution,
        .activity_id = activity->activity_id,
        .try_number = activity->try_number == 0 ? 1 : activity->try_number};
}

/* Looks up the orphan's message. */
static struct request *find_work(struct shard *shard, struct owned *owned,
                                 const struct batch_activity *orphan)
{
    struct request *request = request_create(REQ_FIND_WORK, shard, owned);
    keep_item(request, orphan, (thole_slice){0}, &(struct trace){.parent = {NULL, 0}});
    request->work.digest = request_keep(request, orphan->digest);
    return request;
}

void sweeper_requeue(struct shard *shard, struct owned *owned, const struct batch_activity *row)
{
    struct request *const request = find_work(shard, owned, row);
    request_unshelves(request);
    request_put_aside(request);
}

void orphans_answered(struct owned *owned, struct request *request)
{
    assert(owned->sweeps.sweeping);
    owned->sweeps.sweeping = false;
    say_failed(owned, request);
    if (!request_is_current(owned, request))
        return;
    plan_next(owned, request);
    if (request->status == THOLE_OK)
        owned->sweeps.waiting_ms = request->orphans.waiting_ms;
    for (size_t i = 0; i < request->orphans.rows_len && request->status == THOLE_OK; i++)
        request_put_aside(find_work(request->shard, owned, &request->orphans.rows[i]));
}

/* ---- the message of an orphan ---- */

thole_status find_work_send(struct request *request, thole_error *reterr)
{
    const struct shard *const shard = request->shard;
    return work_look(shard->windows[WINDOW_MESSAGES].requests, shard->engine->topology.ns,
                     &request->work.item, request_token(request), reterr);
}

/* If it is missing or forged, reads the input from the history. If it is not known, the next sweep asks
 * again. */
void find_work_answered(struct owned *owned, struct request *request)
{
    const struct work_item *const item = &request->work.item;
    uint64_t sequence = 0;
    if (!request_is_current(owned, request))
        return;
    enum work_seen const seen = work_look_reply(owned, request, request->work.digest, &sequence);
    if (seen == WORK_UNKNOWN || seen == WORK_THERE)
        return;
    struct request *find = request_create(REQ_FIND_INPUT, request->shard, owned);
    find->find.activity = (struct batch_activity){.instance = request_keep(find, item->instance),
                                                  .queue = request_keep(find, item->queue),
                                                  .activity = request_keep(find, item->activity),
                                                  .execution = item->execution,
                                                  .activity_id = item->activity_id,
                                                  .try_number = (uint32_t)item->try_number};
    if (request->unshelved)
        request_unshelves(find);
    request_submit(find);
}

/* ---- an orphan's input: a loader's thread ---- */

static thole_status find_scheduled(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct request *request = arg;
    struct asked_input *const asked = &request->find;
    struct arena arena;
    struct record record;
    thole_status status = THOLE_OK;
    (void)sequence;
    (void)subject;
    arena_init(&arena, RECORD_BYTES_MAX * 2);
    if (record_decode(body, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_TURN &&
        record.turn.execution == asked->activity.execution)
        for (size_t i = 0; i < record.turn.events_len && status == THOLE_OK; i++) {
            const struct event *event = &record.turn.events[i];
            if (event->kind != EVENT_ACTIVITY_SCHEDULED || event->id != asked->activity.activity_id)
                continue;
            asked->found = true;
            status = arena_dup(&request->arena, event->data, &asked->input);
            asked->trace = (struct trace){request_keep(request, record.turn.trace.parent),
                                          request_keep(request, record.turn.trace.list)};
        }
    arena_release(&arena);
    return status;
}

/* An instance that waits for an activity has often recorded nothing since: its newest record is read first,
 * which costs a tenth of a read of all. */
static thole_status find_in_newest(struct engine_host *engine, const char *stream, const char *subject,
                                   struct request *request)
{
    uint64_t sequence = 0;
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status =
        stream_last_by_subject(engine->connection, stream, subject, &sequence, &body, request_error(request));
    if (status == THOLE_OK && sequence != 0)
        status = find_scheduled(request, sequence, thole_slice_from(subject), buf_bytes(&body));
    buf_release(&body);
    return status;
}

thole_status find_input_load(struct engine_host *engine, struct request *request)
{
    const char *stream = shard_owned(request->shard, request->mail.p)->hist_stream;
    const struct batch_activity *activity = &request->find.activity;
    struct stream_bounds bounds = {0};
    struct buf subject;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = subject_history(&subject, engine->topology.ns, request->mail.p, activity->instance,
                                          activity->execution, request_error(request));
    if (status == THOLE_OK)
        status = find_in_newest(engine, stream, buf_cstr(&subject), request);
    bool const reads = status == THOLE_OK && !request->find.found;
    if (reads)
        status = stream_bounds(engine->connection, stream, &bounds, request_error(request));
    if (reads && status == THOLE_OK)
        status = stream_read(engine->connection, stream, buf_cstr(&subject), 1, bounds.last, find_scheduled,
                             request, request_error(request));
    buf_release(&subject);
    return status;
}

/* ---- queued again ---- */

void find_input_answered(struct owned *owned, struct request *request)
{
    const struct batch_activity *activity = &request->find.activity;
    if (!request_is_current(owned, request))
        return;
    if (!request->find.found) {
        struct log_fields const fields = {.of_partition = true,
                                          .partition = owned->p,
                                          .instance = activity->instance,
                                          .execution = activity->execution,
                                          .activity_id = activity->activity_id};
        log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_UNKNOWN_ROW, &fields,
                        "an activity that the history does not know");
        return;
    }
    struct request *requeue = request_create(REQ_REQUEUE, request->shard, owned);
    keep_item(requeue, activity, request->find.input, &request->find.trace);
    if (request->unshelved)
        request_unshelves(requeue);
    request_submit(requeue);
}

thole_status requeue_send(struct request *request, thole_error *reterr)
{
    const struct shard *const shard = request->shard;
    request->work.item.lists = atomic_load_explicit(&shard->engine->lists, memory_order_relaxed);
    return work_publish(shard->windows[WINDOW_MESSAGES].requests, shard->engine->topology.ns,
                        &request->work.item, request_token(request), reterr);
}

void requeue_answered(struct owned *owned, struct request *request)
{
    struct log_fields const fields = log_work_of(owned->p, &request->work.item);
    if (request->unshelved)
        return; /* not lost */
    log_limits_line(request->shard->engine->lines, clock_monotonic_ms(), LINE_REQUEUED, &fields,
                    "an activity was lost and is queued again");
}

/* ---- deadlines ---- */

/* The worker may still run it. */
static void sweeper_push(struct shard *shard, const struct expired_try *expired)
{
    struct cancel_notice const notice = {.instance = expired->row.instance,
                                         .execution = expired->row.execution,
                                         .activity_ids = &expired->row.activity_id,
                                         .activity_ids_len = 1,
                                         .try_number = expired->row.try_number,
                                         .kind =
                                             thole_slice_from(thole_cancel_kind_name(THOLE_CANCEL_TIMEOUT))};
    notice_cancel(shard, &notice);
}

static void sweeper_ended(const struct owned *owned, const struct request *request)
{
    if (request->expiry.expired_len > 0)
        log_line_of(LOG_LEVEL_INFO, "sweeper", LOG_PARTITION(owned->p),
                    "%zu tries are past their deadline and ended", request->expiry.expired_len);
    for (size_t i = 0; i < request->expiry.expired_len; i++)
        sweeper_push(request->shard, &request->expiry.expired[i]);
}

static void sweeper_look_at(struct owned *owned, uint64_t in_ms, uint64_t slack_ms)
{
    uint64_t const at_ms = clock_monotonic_ms() + in_ms + slack_ms;
    if (in_ms < UINT64_MAX / 2 && (owned->sweeps.expire_ms == 0 || at_ms < owned->sweeps.expire_ms))
        owned->sweeps.expire_ms = at_ms;
}

void sweeper_expect(struct owned *owned, uint64_t deadline_in_ms)
{
    sweeper_look_at(owned, deadline_in_ms, DEADLINE_SLACK_MS + ROUNDING_MS);
}

void expiry_answered(struct owned *owned, struct request *request)
{
    const struct asked_expiry *const asked = &request->expiry;
    assert(owned->sweeps.expiring);
    owned->sweeps.expiring = false;
    say_failed(owned, request);
    if (request->status != THOLE_OK) {
        sweeper_look_at(owned, AGAIN_MS, 0);
        return;
    }
    sweeper_ended(owned, request);
    if (!request_is_current(owned, request))
        return;
    if (asked->expired_len > 0 && asked->deadline_in_ms == 0)
        sweeper_look_at(owned, 0, 0); /* there may be more rows: ask again at once */
    else
        sweeper_expect(owned, asked->deadline_in_ms);
}
