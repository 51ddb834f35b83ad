/* The unresolved tasks of an instance, now or at a point of its history. */
#include "client_restored.h"
#include "inspection.h"
#include "pending_start.h"

struct taking {
    struct inspection *inspection;
    struct arena *arena;
    thole_error *reterr;
};

static thole_status client_inspect_take_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    const struct taking *taking = arg;
    (void)sequence;
    return inspection_take(taking->inspection, bytes, taking->reterr);
}

static thole_status restored_latest(thole_client *client, thole_slice instance, uint64_t *ret_execution,
                                    thole_error *reterr)
{
    struct client_restored restored;
    thole_status const status = client_restored_find(client, instance, &restored, reterr);
    *ret_execution = restored.is ? restored.execution : 0;
    return status == THOLE_DENIED ? THOLE_OK : status;
}

/* The latest execution. Its first turn may not be whole: then the one before it is what counts. *ret: there
 * is one. */
static thole_status read_latest(thole_client *client, thole_slice instance, struct taking *taking, bool *ret,
                                thole_error *reterr)
{
    uint64_t execution = 0;
    bool whole = false, deleted = false;
    THOLE_TRY(history_latest(client, instance, &execution, &deleted, reterr));
    if (deleted)
        THOLE_TRY(restored_latest(client, instance, &execution, reterr));
    for (; execution > 0 && !whole; execution--) {
        thole_status const status =
            client_execution_records(client, instance, execution, client_inspect_take_record, taking, reterr);
        if (status != THOLE_OK && status != THOLE_NOT_FOUND)
            return status;
        whole = inspection_has_turn(taking->inspection);
    }
    *ret = whole;
    return THOLE_OK;
}

/* The history has none: its start may wait, or has begun it meanwhile. */
static thole_status read_pending(thole_client *client, thole_slice instance, struct pending_start *start,
                                 struct taking *taking, thole_error *reterr)
{
    bool found = false;
    struct arena *const arena = taking->arena;
    THOLE_TRY(pending_start_find(client, instance, arena, start, reterr));
    if (start->begun)
        THOLE_TRY(read_latest(client, instance, taking, &found, reterr));
    return found || start->is ? THOLE_OK : pending_start_absent(client, instance, start, reterr);
}

static thole_status say_pending(const struct pending_start *start, thole_inspection_fn *each, void *arg)
{
    thole_inspection const inspection = {.orchestration = start->message.orchestration,
                                         .version = start->message.version,
                                         .status = THOLE_INSTANCE_PENDING,
                                         .input = start->message.data,
                                         .time_ms = start->stored_ms,
                                         .ahead = start->ahead};
    return each(arg, &inspection);
}

static thole_status read_now(thole_client *client, thole_slice instance, struct pending_start *start,
                             struct taking *taking, thole_error *reterr)
{
    bool found = false;
    THOLE_TRY(read_latest(client, instance, taking, &found, reterr));
    return found ? THOLE_OK : read_pending(client, instance, start, taking, reterr);
}

static thole_status client_inspect_read_execution(thole_client *client, thole_slice instance,
                                                  uint64_t execution, struct taking *taking,
                                                  thole_error *reterr)
{
    uint64_t latest = 0;
    bool deleted = false;
    thole_status const status =
        client_execution_records(client, instance, execution, client_inspect_take_record, taking, reterr);
    if (status != THOLE_NOT_FOUND || history_latest(client, instance, &latest, &deleted, NULL) != THOLE_OK ||
        latest == 0)
        return status;
    return thole_fail(reterr, THOLE_NOT_FOUND,
                      "instance \"%.*s\" has no execution %llu, or it was pruned: its latest is %llu",
                      THOLE_FMT(instance), (unsigned long long)execution, (unsigned long long)latest);
}

static thole_status client_inspect_read_records(thole_client *client, thole_slice instance,
                                                const thole_inspect_point *point, struct pending_start *start,
                                                struct taking *taking, thole_error *reterr)
{
    if (point == NULL || (point->execution == 0 && point->time_ms == 0))
        return read_now(client, instance, start, taking, reterr);
    if (point->execution != 0)
        return client_inspect_read_execution(client, instance, point->execution, taking, reterr);
    return client_history_records(client, instance, client_inspect_take_record, taking, reterr);
}

thole_status thole_client_inspect_at(thole_client *client, thole_slice instance,
                                     const thole_inspect_point *point, thole_inspection_fn *each, void *arg,
                                     thole_error *reterr)
{
    THOLE_TRY(id_check(instance, reterr));
    struct pending_start start = {.is = false};
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    struct taking taking = {inspection_create(instance, point), &arena, reterr};
    thole_status status = client_inspect_read_records(client, instance, point, &start, &taking, reterr);
    if (status == THOLE_OK && start.is)
        status = say_pending(&start, each, arg);
    else if (status == THOLE_OK)
        status = inspection_end(taking.inspection, client->topology.payload_max, each, arg, reterr);
    inspection_destroy(taking.inspection);
    arena_release(&arena);
    return status;
}

thole_status thole_client_inspect(thole_client *client, thole_slice instance, thole_inspection_fn *each,
                                  void *arg, thole_error *reterr)
{
    return thole_client_inspect_at(client, instance, NULL, each, arg, reterr);
}
