/* Requests for rows: of the projection, live instances and timers. */
#include "deadlines.h"
#include "shard_parts.h"
#include <assert.h>

enum { TIMERS_MAX = 1000000, JOINED_ROWS_MAX = 4000 };

void store_ask(struct shard *shard, struct owned *owned, const struct partition_out *out,
               enum request_kind kind)
{
    struct request *request = request_of(kind, shard, owned, out);
    request->store.epoch = partition_epoch(owned->machine);
    if (kind == REQ_STORE_OPEN)
        assert(request->store.epoch == out->store_open.epoch);
    else if (kind == REQ_STORE_TIMERS)
        request->store.before_ms = out->read_timers.before_ms;
    else if (kind == REQ_STORE_APPLY)
        request->store.batch = out->apply.batch;
    request_submit(request);
}

/* ---- in the store: batches on the shard's thread, the others on the store's ---- */

/* The machine handles a newer epoch. */
thole_status store_open(struct postgres *pg, struct request *request)
{
    struct in_store_opened *const in = &request->in.store_opened;
    thole_status const status = projector_store_open(pg, request->mail.p, request->store.epoch,
                                                     &in->projected, &in->epoch, request_error(request));
    return status == THOLE_FENCED ? THOLE_OK : status;
}

thole_status store_reset(struct postgres *pg, struct request *request)
{
    return projector_store_reset(pg, request->mail.p, request->store.epoch, request_error(request));
}

thole_status store_live(struct postgres *pg, struct request *request)
{
    struct live_summary live = {0};
    THOLE_TRY(projector_store_complete(pg, request->mail.p, request->store.epoch, request_error(request)));
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

static void applied(struct request *request)
{
    const struct batch *const batch = request->store.batch;
    request->in.applied = (struct in_applied){batch->activities_removed, batch->activities_removed_len};
    request->store.deadline_in_ms = deadlines_first(batch);
}

thole_status store_apply(struct postgres *pg, struct request *request)
{
    applied(request);
    return projector_store_apply(pg, &request->store.batch, 1, request_error(request));
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
        applied(requests[i]);
    }
    thole_status const status = projector_store_apply(pg, batches, n, &err);
    bool const together = status == THOLE_OK || status == THOLE_UNAVAILABLE;
    for (size_t i = 0; i < n; i++) {
        requests[i]->status = together ? status : store_apply(pg, requests[i]);
        if (together && status != THOLE_OK)
            *request_error(requests[i]) = err;
    }
}

/* ---- back on the shard's ---- */

void store_answered(struct owned *owned, struct request *request)
{
    if (request_is_current(owned, request))
        sweeper_expect(owned, request->store.deadline_in_ms);
    request_input(owned, request);
}
