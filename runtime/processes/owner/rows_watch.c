/*
 * Whether the rows in the database are still those that the batches of a partition have made. A batch finds
 * out by itself, as it says which one it follows. But an idle partition has none, and in a restored backup
 * the activities and timers of what is idle may be missing: nothing would ever happen to it. So every few
 * seconds the rows of all partitions are looked at, in one statement.
 */
#include "shard_parts.h"
#include <assert.h>

enum { LOOK_MS = 5000 };

/* Equal for all partitions, so that their looks join. */
static uint64_t next_look_ms(uint64_t now_ms)
{
    return (now_ms / LOOK_MS + 1) * LOOK_MS;
}

static void rows_watch_look(struct shard *shard, struct owned *owned)
{
    struct rows_look look = {
        .partition = owned->p, .epoch = partition_epoch(owned->machine), .complete = true};
    if (!partition_rows(owned->machine, &look.rows))
        return; /* a batch is on its way, and looks itself */
    struct request *const request = request_create(REQ_STORE_LOOK, shard, owned);
    request->store.look = look;
    owned->rows.looking = true;
    request_submit(request);
}

void rows_watch(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    struct rows_watch *const rows = &owned->rows;
    bool const open = partition_state(owned->machine) == PARTITION_OPEN,
               due = open && now_ms >= rows->look_ms;
    if (due && rows->look_ms != 0 && !rows->looking)
        rows_watch_look(shard, owned);
    if (due)
        rows->look_ms = next_look_ms(now_ms);
    else if (!open)
        rows->look_ms = 0;
}

uint64_t rows_watch_ms(const struct owned *owned)
{
    return owned->rows.look_ms == 0 ? UINT64_MAX : owned->rows.look_ms;
}

thole_status rows_look(struct postgres *pg, struct request *request)
{
    struct rows_look *const look = &request->store.look;
    THOLE_TRY(projector_store_look(pg, look, 1, request_error(request)));
    return projector_store_found(look, request_error(request));
}

bool rows_look_joins(struct request *const *taken, size_t n, const struct request *next)
{
    for (size_t i = 0; i < n; i++)
        if (taken[i]->mail.p == next->mail.p) /* of an owner before */
            return false;
    return next->kind == REQ_STORE_LOOK;
}

void rows_look_all(struct postgres *pg, struct request *const *requests, size_t n)
{
    struct rows_look looks[STORE_JOINED_MAX];
    thole_error err = {0};
    assert(n <= STORE_JOINED_MAX);
    for (size_t i = 0; i < n; i++)
        looks[i] = requests[i]->store.look;
    thole_status const status = projector_store_look(pg, looks, n, &err);
    for (size_t i = 0; i < n; i++) {
        requests[i]->status =
            status != THOLE_OK ? status : projector_store_found(&looks[i], request_error(requests[i]));
        if (status != THOLE_OK)
            *request_error(requests[i]) = err;
    }
}

void rows_looked(struct owned *owned, struct request *request)
{
    assert(owned->rows.looking);
    owned->rows.looking = false;
    if (!request_is_current(owned, request))
        return;
    if (request->status == THOLE_CONFLICT)
        shard_cause(owned, CLOSED_ROWS_RESTORED);
    else if (request->status == THOLE_FENCED)
        shard_cause(owned, CLOSED_RIVAL);
    else
        return; /* a lost connection is noticed by all; else the next look asks again */
    shard_step_down(owned, request_error_text(request));
}
