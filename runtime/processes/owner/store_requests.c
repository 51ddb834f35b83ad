/* Requests for rows: of the projection, live instances and timers. */
#include "deadlines.h"
#include "shard_parts.h"
#include <assert.h>

enum { TIMERS_MAX = 1000000, JOINED_ROWS_MAX = 4000 };

void store_ask(struct shard *shard, struct owned *owned, const struct partition_out *out,
               enum request_kind kind)
{
    struct request *request = request_of(kind, shard, owned, out);
    request->store.owner = request_owner(owned);
    if (kind == REQ_STORE_OPEN) {
        assert(request->store.owner.epoch == out->store_open.epoch);
        request->store.adopts = owned->adopts;
    } else if (kind == REQ_STORE_TIMERS)
        request->store.before_ms = out->read_timers.before_ms;
    else if (kind == REQ_STORE_APPLY)
        request->store.batch = out->apply.batch;
    request_submit(request);
}

/* For the metric. */
static void store_note_set_aside(const struct postgres *pg, struct request *request)
{
    request->store.set_aside = projector_store_set_aside(pg, request->mail.p);
}

/* ---- in the store: batches on the shard's thread, the others on the store's ---- */

static uint64_t key_mark(const struct request *request)
{
    return nonce_key_mark(&request->shard->engine->topology.nonce_key);
}

static thole_status store_sign(struct postgres *pg, struct request *request, uint64_t *ret_mark)
{
    return projector_store_sign(pg, request->mail.p, request->store.owner.epoch, key_mark(request), ret_mark,
                                request_error(request));
}

/* The machine handles a newer epoch. */
thole_status store_open(struct postgres *pg, struct request *request)
{
    struct in_store_opened *const in = &request->in.store_opened;
    if (request->store.adopts.text[0] != '\0')
        THOLE_TRY(namespace_store_adopt(pg, &request->store.adopts, NULL, request_error(request)));
    thole_status const status = projector_store_open(pg, request->mail.p, request->store.owner.epoch,
                                                     &in->rows, &in->epoch, request_error(request));
    store_note_set_aside(pg, request);
    if (status != THOLE_OK)
        return status == THOLE_FENCED ? THOLE_OK : status;
    uint64_t mark = 0;
    THOLE_TRY(store_sign(pg, request, &mark));
    in->other_key = mark != key_mark(request);
    return THOLE_OK;
}

thole_status store_reset(struct postgres *pg, struct request *request)
{
    uint64_t mark;
    THOLE_TRY(projector_store_reset(pg, request->mail.p, request->store.owner.epoch,
                                    &request->in.store_reset.rows, request_error(request)));
    store_note_set_aside(pg, request);
    return store_sign(pg, request, &mark);
}

thole_status store_live(struct postgres *pg, struct request *request)
{
    struct live_summary live = {0};
    THOLE_TRY(projector_store_complete(pg, &request->store.owner, request_error(request)));
    THOLE_TRY(projector_store_live(pg, request->mail.p, &request->arena, &live, request_error(request)));
    request->in.live = (struct in_live){.blocked = live.blocked,
                                        .blocked_len = live.blocked_len,
                                        .names = live.orchestrations,
                                        .counts = live.orchestration_counts,
                                        .names_len = live.orchestrations_len,
                                        .activities = live.open_activities};
    request->store.deadline_in_ms = live.deadline_in_ms;
    return THOLE_OK;
}

thole_status store_timers(struct postgres *pg, struct request *request)
{
    struct in_timers *const in = &request->in.timers;
    struct batch_timer *timers = NULL;
    THOLE_TRY(projector_store_timers(pg, request->mail.p, request->store.before_ms, TIMERS_MAX,
                                     &request->arena, &timers, &in->timers_len, &in->next_due_ms,
                                     request_error(request)));
    in->timers = timers;
    return THOLE_OK;
}

static void store_requests_applied(struct request *request)
{
    const struct batch *const batch = request->store.batch;
    request->in.applied = (struct in_applied){batch->activities_removed, batch->activities_removed_len};
    request->store.deadline_in_ms = deadlines_first(batch);
}

/* A row that Postgres refuses for what is in it does not stop the others. */
static thole_status store_apply_apart(struct postgres *pg, struct request *request)
{
    struct projector_refused refused;
    thole_status const status =
        projector_store_apply_apart(pg, request->store.batch, &refused, request_error(request));
    if (status != THOLE_OK || refused.rows == 0)
        return status;
    request->store.refused = refused.rows;
    request->store.refused_first = request_keep(request, thole_slice_from(refused.first));
    return THOLE_OK;
}

thole_status store_apply(struct postgres *pg, struct request *request)
{
    store_requests_applied(request);
    thole_status status = projector_store_apply(pg, &request->store.batch, 1, request_error(request));
    if (status == THOLE_INVALID || status == THOLE_LIMIT)
        status = store_apply_apart(pg, request);
    store_note_set_aside(pg, request);
    return status;
}

/* Deletions lock rows in another order; for a synchronous commit the other batches would have to wait.
 */
static bool goes_alone(const struct batch *batch)
{
    return batch->deletions_len > 0 || batch->durable;
}

bool store_apply_joins(struct request *const *taken, size_t n, const struct request *next)
{
    if (next->kind != REQ_STORE_APPLY || goes_alone(next->store.batch) || goes_alone(taken[0]->store.batch))
        return false;
    size_t rows = projector_store_rows(next->store.batch);
    for (size_t i = 0; i < n; i++) {
        rows += projector_store_rows(taken[i]->store.batch);
        if (taken[i]->mail.p == next->mail.p)
            return false;
    }
    return rows <= JOINED_ROWS_MAX;
}

/* If one of them fails, or its partition has another owner, each is applied alone, and only that one
 * fails. */
void store_apply_all(struct postgres *pg, struct request *const *requests, size_t n)
{
    struct batch *batches[STORE_JOINED_MAX];
    thole_error err = {0};
    assert(n > 1 && n <= STORE_JOINED_MAX);
    for (size_t i = 0; i < n; i++) {
        batches[i] = requests[i]->store.batch;
        store_requests_applied(requests[i]);
    }
    thole_status const status = projector_store_apply(pg, batches, n, &err);
    bool const together = status == THOLE_OK || status == THOLE_UNAVAILABLE;
    for (size_t i = 0; i < n; i++) {
        requests[i]->status = together ? status : store_apply(pg, requests[i]);
        if (together && status != THOLE_OK)
            *request_error(requests[i]) = err;
        store_note_set_aside(pg, requests[i]);
    }
}

/* ---- back on the shard's ---- */

static void store_say_set_aside(struct owned *owned, const struct request *request)
{
    log_limits_line(
        request->shard->engine->lines, clock_monotonic_ms(), LINE_SET_ASIDE, LOG_PARTITION(owned->p),
        "Postgres refuses %zu rows, which are set aside, and %llu of the partition in all; a row of "
        "%.*s; remove the cause, then `thole projections verify`",
        request->store.refused, (unsigned long long)request->store.set_aside,
        THOLE_FMT(request->store.refused_first));
}

void store_opened(struct owned *owned, struct request *request)
{
    if (request_is_current(owned, request))
        owned->set_aside = request->store.set_aside;
    request_input(owned, request);
}

void store_answered(struct owned *owned, struct request *request)
{
    if (request_is_current(owned, request)) {
        sweeper_expect(owned, request->store.deadline_in_ms);
        log_keep_soon(owned);
    }
    request_input(owned, request);
}

void store_applied(struct owned *owned, struct request *request)
{
    if (request->store.refused > 0) {
        shard_count_refused(request->shard, request->store.refused);
        store_say_set_aside(owned, request);
    }
    if (request_is_current(owned, request))
        owned->set_aside = request->store.set_aside;
    store_answered(owned, request);
}
