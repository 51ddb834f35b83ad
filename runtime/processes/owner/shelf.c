/*
 * The shelf: activities that no worker of their queue knows. A worker that is given one, and hears from the
 * others that none knows it, marks its row and removes its message, so that it takes no place among those
 * that are delivered. Here it is looked every few seconds which names are on the shelf, in one statement for
 * all partitions with open activities; while there are some the workers are asked what they know
 * (served_job.c), and rows of a name that one knows are taken off the shelf, and queued again like orphans,
 * some at a time. Whatever is lost between the two leaves a row without a mark and without a message: an
 * orphan, which the sweeper finds.
 */
#include "served_job.h"
#include "shard_parts.h"
#include <assert.h>

enum {
    SHELF_LOOK_MS = 5000,
    SHELF_FULL_MS = 2000,        /* likewise while the shelf has activities */
    SHELF_SOON_MS = 600,         /* when the workers have answered */
    SHELF_AGAIN_MS = 20,         /* there may be more of a name that is known */
    SHELF_SILENT_MS = 60 * 1000, /* on the shelf, when it cannot be known who knows what */
    SHELF_NAMES_MAX = 1000,
    SHELF_ROWS_MAX = 256, /* taken at a time */
    SHELF_OUT_MAX = 128,  /* no more are taken while so many of the shard are on their way */
};

/* ---- when to look ---- */

/* Equal for all partitions, so that their looks join. */
static uint64_t next_shelf_ms(uint64_t now_ms, uint64_t pause_ms)
{
    return (now_ms / pause_ms + 1) * pause_ms;
}

static void shelf_look(struct shard *shard, struct owned *owned)
{
    struct request *const request = request_create(REQ_FIND_SHELVED, shard, owned);
    owned->shelf.busy = true;
    request_submit(request);
}

void shelf_run(struct shard *shard, struct owned *owned, uint64_t now_ms)
{
    struct shelf_watch *const shelf = &owned->shelf;
    if (partition_state(owned->machine) != PARTITION_OPEN || partition_open_activities(owned->machine) == 0) {
        shelf->look_ms = shelf->rows = 0;
        return;
    }
    if (shelf->look_ms == 0)
        shelf->look_ms = now_ms; /* finds activities shelved before the partition was opened */
    if (shelf->busy || now_ms < shelf->look_ms || shard->unshelved >= SHELF_OUT_MAX)
        return;
    shelf->look_ms = next_shelf_ms(now_ms, shelf->rows > 0 ? SHELF_FULL_MS : SHELF_LOOK_MS);
    shelf_look(shard, owned);
}

uint64_t shelf_deadline_ms(const struct shard *shard, const struct owned *owned)
{
    const struct shelf_watch *const shelf = &owned->shelf;
    bool const waits = shelf->busy || shard->unshelved >= SHELF_OUT_MAX; /* for an answer */
    return shelf->look_ms == 0 || waits ? UINT64_MAX : shelf->look_ms;
}

/* ---- which names are on it ---- */

/* Copies of those of its partition. */
static void shelf_give(struct request *request, const struct shelved_name *names, size_t len)
{
    struct asked_shelf *const asked = &request->shelf;
    asked->names = arena_array(&request->arena, len + 1, sizeof *asked->names);
    for (size_t i = 0; asked->names != NULL && i < len; i++)
        if (names[i].partition == request->mail.p)
            asked->names[asked->names_len++] =
                (struct shelved_name){.partition = names[i].partition,
                                      .queue = request_keep(request, names[i].queue),
                                      .activity = request_keep(request, names[i].activity),
                                      .rows = names[i].rows};
}

thole_status shelf_find(struct postgres *pg, struct request *request)
{
    struct asked_shelf *const asked = &request->shelf;
    return projector_store_shelved(pg, &request->mail.p, 1, SHELF_NAMES_MAX, &request->arena, &asked->names,
                                   &asked->names_len, request_error(request));
}

bool shelf_find_joins(struct request *const *taken, size_t n, const struct request *next)
{
    for (size_t i = 0; i < n; i++)
        if (taken[i]->mail.p == next->mail.p) /* of an owner before */
            return false;
    return next->kind == REQ_FIND_SHELVED;
}

void shelf_find_all(struct postgres *pg, struct request *const *requests, size_t n)
{
    uint32_t partitions[STORE_JOINED_MAX] = {0};
    struct shelved_name *names = NULL;
    size_t len = 0;
    struct arena *const arena = &requests[0]->arena;
    thole_error err = {0};
    assert(n <= STORE_JOINED_MAX);
    for (size_t i = 0; i < n; i++)
        partitions[i] = requests[i]->mail.p;
    thole_status const status =
        projector_store_shelved(pg, partitions, n, SHELF_NAMES_MAX, arena, &names, &len, &err);
    for (size_t i = 0; i < n; i++) {
        requests[i]->status = status;
        if (status == THOLE_OK)
            shelf_give(requests[i], names, len);
        else
            *request_error(requests[i]) = err;
    }
}

/* Those that a worker knows now; all, if that cannot be known. */
static void shelf_choose(struct engine_host *engine, const struct request *found, struct request *to)
{
    struct served_names *const served = served_job_names(engine->served);
    bool const silent = served_names_silent(served);
    bool asks = false;
    struct asked_shelf *const asked = &to->shelf;
    asked->names = arena_array(&to->arena, found->shelf.names_len, sizeof *asked->names);
    asked->least_ms = silent ? SHELF_SILENT_MS : 0;
    for (size_t i = 0; asked->names != NULL && i < found->shelf.names_len; i++) {
        const struct shelved_name *const name = &found->shelf.names[i];
        enum served const is =
            served_names_look(served, name->queue, name->activity, clock_monotonic_ms(), &asks);
        if (silent || is == SERVED_BY_SOME)
            asked->names[asked->names_len++] = (struct shelved_name){
                .queue = request_keep(to, name->queue), .activity = request_keep(to, name->activity)};
    }
    if (asks)
        served_job_ask(engine->served);
    asked->asks = asks;
}

static void shelf_say(const struct request *request)
{
    const struct shelved_name *const name = &request->shelf.names[0];
    log_limits_line(
        request->shard->engine->lines, clock_monotonic_ms(), LINE_SHELVED, LOG_PARTITION(request->mail.p),
        "no worker of queue %.*s knows activity %.*s: %llu of them in this partition wait outside "
        "of the queue until one does",
        THOLE_FMT(name->queue), THOLE_FMT(name->activity), (unsigned long long)name->rows);
}

void shelf_found(struct owned *owned, struct request *request)
{
    struct shard *const shard = request->shard;
    struct shelf_watch *const shelf = &owned->shelf;
    uint64_t const now_ms = clock_monotonic_ms();
    assert(shelf->busy);
    shelf->busy = false;
    if (!request_is_current(owned, request) || request->status != THOLE_OK)
        return; /* the next look asks again */
    uint64_t const before = shelf->rows;
    shelf->rows = 0;
    for (size_t i = 0; i < request->shelf.names_len; i++)
        shelf->rows += request->shelf.names[i].rows;
    if (shelf->rows == 0)
        return;
    if (before == 0)
        shelf_say(request);
    struct request *const take = request_create(REQ_UNSHELVE, shard, owned);
    shelf_choose(shard->engine, request, take);
    if (take->shelf.asks)
        shelf->look_ms = now_ms + SHELF_SOON_MS;
    if (take->shelf.names_len == 0) {
        request_destroy(take);
        return;
    }
    take->shelf.owner = request_owner(owned);
    shelf->busy = true;
    request_submit(take);
}

/* ---- taking rows off it ---- */

thole_status shelf_take(struct postgres *pg, struct request *request)
{
    struct asked_shelf *const asked = &request->shelf;
    return projector_store_unshelve(pg, &asked->owner, asked->names, asked->names_len, asked->least_ms,
                                    SHELF_ROWS_MAX, &request->arena, &asked->rows, &asked->rows_len,
                                    request_error(request));
}

void shelf_taken(struct owned *owned, struct request *request)
{
    struct asked_shelf *const asked = &request->shelf;
    assert(owned->shelf.busy);
    owned->shelf.busy = false;
    if (!request_is_current(owned, request) || request->status != THOLE_OK)
        return;
    for (size_t i = 0; i < asked->rows_len; i++)
        sweeper_requeue(request->shard, owned, &asked->rows[i]);
    if (asked->rows_len == SHELF_ROWS_MAX)
        owned->shelf.look_ms = clock_monotonic_ms() + SHELF_AGAIN_MS;
}
