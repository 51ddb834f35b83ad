/* Which workers and engines are running: workers answer a question, engines send heartbeats. */
#include "client_internal.h"
#include "roll_call.h"
#include <stdio.h>

thole_status thole_client_workers(thole_client *client, thole_worker_fn *each, void *arg, thole_error *reterr)
{
    struct roll_answer *answers = NULL;
    struct arena arena;
    size_t len = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = roll_call(client->connection, client->topology.ns, &arena, &answers, &len, reterr);
    for (size_t i = 0; i < len && status == THOLE_OK; i++) {
        thole_worker_info const info = {.worker = answers[i].worker,
                                        .queue = answers[i].queue,
                                        .slots = answers[i].slots,
                                        .activities = answers[i].activities,
                                        .activities_len = answers[i].activities_len};
        status = each(arg, &info);
    }
    arena_release(&arena);
    return status;
}

struct engines {
    thole_engine_fn *each;
    void *arg;
};

static thole_status client_nodes_on_node(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    const struct engines *engines = arg;
    struct heartbeat heartbeat;
    struct arena arena;
    (void)sequence;
    (void)subject;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = THOLE_OK;
    /* Empty: the node has left. An unreadable one is of a newer engine, whose code is not known. */
    if (body.len > 0 && heartbeat_decode(body, &arena, &heartbeat, NULL) == THOLE_OK) {
        thole_engine_info const info = {.node = heartbeat.node,
                                        .started_ms = heartbeat.started_ms,
                                        .orchestrations = heartbeat.orchestrations,
                                        .orchestrations_len = heartbeat.orchestrations_len};
        status = engines->each(engines->arg, &info);
    }
    arena_release(&arena);
    return status;
}

thole_status thole_client_engines(thole_client *client, thole_engine_fn *each, void *arg, thole_error *reterr)
{
    struct engines engines = {each, arg};
    char stream[STREAM_NAME_BYTES_MAX];
    char filter[STREAM_NAME_BYTES_MAX];
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_NODES", client->topology.ns); /* a checked name */
    (void)snprintf(filter, sizeof filter, "$KV.THOLE_%s_NODES.>", client->topology.ns);
    return stream_walk(client->connection, stream, filter, 1, UINT64_MAX, client_nodes_on_node, &engines,
                       reterr);
}
