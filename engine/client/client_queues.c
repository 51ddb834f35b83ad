/* queues: what there is in them, and what their consumers say of them. */
#include "client_internal.h"

static thole_status ask_server(struct thole_client *client, thole_queue_info *info, thole_error *reterr)
{
    const char *const ns = client->topology.ns;
    THOLE_TRY(topology_queue_limit(client->connection, ns, info->queue, &info->limit, reterr));
    return topology_queue_lease(client->connection, ns, info->queue, &info->lease_ms, reterr);
}

static void add_row(thole_queue_info *info, thole_queue_worker *workers, const struct queue_row *row)
{
    bool const lives = info->lease_ms == 0 || row->silent_ms < info->lease_ms;
    info->outside += row->outside;
    info->poisoned += row->poisoned;
    if (row->worker.len == 0) {
        info->waiting += row->activities;
        return;
    }
    *(lives ? &info->running : &info->waiting) += row->activities;
    workers[info->workers_len++] = (thole_queue_worker){
        .worker = row->worker, .activities = row->activities, .silent_ms = row->silent_ms};
}

thole_status thole_client_queues(thole_client *client, thole_slice queue, thole_queue_fn *each, void *arg,
                                 thole_error *reterr)
{
    struct client_queues queues = {.queue = queue};
    arena_init(&queues.arena, CLIENT_ARENA_MAX);
    thole_status status = client_read_queues(client, &queues, reterr);
    thole_queue_worker *const workers =
        arena_array(&queues.arena, queues.rows_len + 1, sizeof(thole_queue_worker));
    if (status == THOLE_OK && workers == NULL)
        status = thole_fail(reterr, THOLE_NOMEM, "out of memory");
    for (size_t i = 0; i < queues.rows_len && status == THOLE_OK;) {
        thole_queue_info info = {.queue = queues.rows[i].queue, .workers = workers};
        status = ask_server(client, &info, reterr);
        for (; i < queues.rows_len && thole_slice_equal(queues.rows[i].queue, info.queue); i++)
            add_row(&info, workers, &queues.rows[i]);
        if (status == THOLE_OK)
            status = each(arg, &info);
    }
    arena_release(&queues.arena);
    return status;
}
