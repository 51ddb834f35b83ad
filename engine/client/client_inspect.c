/* The unresolved tasks of an instance, now or at a point of its history. */
#include "client_restored.h"
#include "inspection.h"

struct taking {
    struct inspection *inspection;
    thole_error *reterr;
};

static thole_status take_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    const struct taking *taking = arg;
    (void)sequence;
    return inspection_take(taking->inspection, bytes, taking->reterr);
}

static thole_status not_there(const thole_client *client, thole_slice instance, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                      THOLE_FMT(instance), client->topology.ns);
}

static thole_status restored_latest(thole_client *client, thole_slice instance, uint64_t *ret_execution,
                                    thole_error *reterr)
{
    struct client_restored restored;
    thole_status const status = client_restored_find(client, instance, &restored, reterr);
    *ret_execution = restored.is ? restored.execution : 0;
    return status == THOLE_DENIED ? THOLE_OK : status;
}

/* The latest execution. Its first turn may not be whole: then the one before it is what counts. */
static thole_status read_latest(thole_client *client, thole_slice instance, struct taking *taking,
                                thole_error *reterr)
{
    uint64_t execution = 0;
    bool whole = false, deleted = false;
    THOLE_TRY(history_latest(client, instance, &execution, &deleted, reterr));
    if (deleted)
        THOLE_TRY(restored_latest(client, instance, &execution, reterr));
    for (; execution > 0 && !whole; execution--) {
        thole_status const status =
            client_execution_records(client, instance, execution, take_record, taking, reterr);
        if (status != THOLE_OK && status != THOLE_NOT_FOUND)
            return status;
        whole = inspection_has_turn(taking->inspection);
    }
    return whole ? THOLE_OK : not_there(client, instance, reterr);
}

static thole_status read_records(thole_client *client, thole_slice instance, const thole_inspect_point *point,
                                 struct taking *taking, thole_error *reterr)
{
    if (point == NULL || (point->execution == 0 && point->time_ms == 0))
        return read_latest(client, instance, taking, reterr);
    if (point->execution != 0)
        return client_execution_records(client, instance, point->execution, take_record, taking, reterr);
    return client_history_records(client, instance, take_record, taking, reterr);
}

thole_status thole_client_inspect_at(thole_client *client, thole_slice instance,
                                     const thole_inspect_point *point, thole_inspection_fn *each, void *arg,
                                     thole_error *reterr)
{
    THOLE_TRY(id_check(instance, reterr));
    struct taking taking = {inspection_create(instance, point), reterr};
    thole_status status = read_records(client, instance, point, &taking, reterr);
    if (status == THOLE_OK)
        status = inspection_end(taking.inspection, client->topology.payload_max, each, arg, reterr);
    inspection_destroy(taking.inspection);
    return status;
}

thole_status thole_client_inspect(thole_client *client, thole_slice instance, thole_inspection_fn *each,
                                  void *arg, thole_error *reterr)
{
    return thole_client_inspect_at(client, instance, NULL, each, arg, reterr);
}
