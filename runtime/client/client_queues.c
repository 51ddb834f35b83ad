/* Contents of queues, and limits and leases of their consumers. */
#include "client_internal.h"
#include "message.h"
#include <assert.h>
#include <string.h>

static thole_status ask_server(struct thole_client *client, thole_queue_info *info, thole_error *reterr)
{
    const char *const ns = client->topology.ns;
    THOLE_TRY(topology_queue_limit(client->connection, ns, info->queue, &info->limit, reterr));
    return topology_queue_lease(client->connection, ns, info->queue, &info->lease_ms, &info->delivered,
                                reterr);
}

static int client_queues_compare(thole_slice a, thole_slice b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static void add_row(thole_queue_info *info, thole_queue_worker *workers, const struct queue_row *row)
{
    bool const lives = info->lease_ms == 0 || row->silent_ms < info->lease_ms;
    info->outside += row->outside;
    info->poisoned += row->poisoned;
    info->oldest_ms = row->oldest_ms > info->oldest_ms ? row->oldest_ms : info->oldest_ms;
    if (row->worker.len == 0) {
        info->waiting += row->activities;
        return;
    }
    *(lives ? &info->running : &info->waiting) += row->activities;
    workers[info->workers_len++] = (thole_queue_worker){
        .worker = row->worker, .activities = row->activities, .silent_ms = row->silent_ms};
}

/* The rows of both statements are by queue. One that the second has not seen any more has none. */
static void take_activities(const struct client_queues *queues, size_t *at, thole_queue_activity *room,
                            thole_queue_info *info)
{
    const struct queue_activity *rows = queues->activities;
    assert(info->activities_len == 0);
    info->activities = room;
    while (*at < queues->activities_len && client_queues_compare(rows[*at].queue, info->queue) < 0)
        (*at)++;
    for (; *at < queues->activities_len && client_queues_compare(rows[*at].queue, info->queue) == 0; (*at)++)
        room[info->activities_len++] =
            (thole_queue_activity){.activity = rows[*at].activity, .count = rows[*at].activities};
}

thole_status thole_client_queues(thole_client *client, thole_slice queue, thole_queue_fn *each, void *arg,
                                 thole_error *reterr)
{
    struct client_queues queues = {.queue = queue};
    arena_init(&queues.arena, CLIENT_ARENA_MAX);
    thole_status status = client_read_queues(client, &queues, reterr);
    thole_queue_worker *const workers =
        arena_array(&queues.arena, queues.rows_len + 1, sizeof(thole_queue_worker));
    thole_queue_activity *const activities =
        arena_array(&queues.arena, queues.activities_len + 1, sizeof *activities);
    size_t at = 0;
    if (status == THOLE_OK && (workers == NULL || activities == NULL))
        status = thole_fail(reterr, THOLE_NOMEM, "out of memory");
    for (size_t i = 0; i < queues.rows_len && status == THOLE_OK;) {
        thole_queue_info info = {.queue = queues.rows[i].queue, .workers = workers};
        info.foreign = name_check(info.queue, "queue", NULL) != THOLE_OK;
        if (!info.foreign)
            status = ask_server(client, &info, reterr);
        size_t const first = i;
        for (; i < queues.rows_len && thole_slice_equal(queues.rows[i].queue, info.queue); i++)
            add_row(&info, workers, &queues.rows[i]);
        assert(i > first && info.workers_len <= i - first); /* a row has one worker, or none */
        take_activities(&queues, &at, activities, &info);
        if (status == THOLE_OK)
            status = each(arg, &info);
    }
    arena_release(&queues.arena);
    return status;
}
