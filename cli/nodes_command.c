/* nodes: the engines and workers that live. */
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>

enum { SHARES_BYTES = 32 * 1024 };

static const struct table_column node_columns[] = {
    {"NODE", 36, 12, 0, false},
    {"ROLE", 6, 6, 0, false},
    {"HEARTBEAT", 9, 9, 2, true},
    {"STARTED", 24, 24, 3, false},
    {"SERVES", TABLE_WHOLE, 20, 1, false},
};

static void node_line(const struct listing *listing, thole_slice node, const char *role,
                      const char *heartbeat, const char *started, thole_slice serves)
{
    struct table table;
    table_begin(&table, node_columns, sizeof node_columns / sizeof *node_columns, listing->rows == 0);
    table_cell(&table, TONE_PLAIN, node);
    table_text(&table, role);
    table_text(&table, heartbeat);
    table_text(&table, started);
    table_cell(&table, TONE_PLAIN, serves);
    table_release(&table);
}

/* ---- engines ---- */

static void engine_line(const struct listing *listing, const struct cluster *cluster,
                        const struct cluster_engine *engine)
{
    char started[TIME_TEXT_BYTES], heartbeat[32];
    struct buf shares, serves;
    size_t shares_len;
    buf_init(&shares, SHARES_BYTES);
    buf_init(&serves, SHARES_BYTES + 64);
    cluster_shares(cluster, engine->node, &shares, &shares_len);
    text_time(engine->started_ms, started);
    (void)snprintf(heartbeat, sizeof heartbeat, "%" PRIu64 " ms", engine->heartbeat_ms);
    if (shares_len == 0)
        buf_text(&serves, "no partition");
    else
        buf_printf(&serves, "%zu partition%s: %s", shares_len, shares_len == 1 ? "" : "s", buf_cstr(&shares));
    node_line(listing, engine->node, "engine", heartbeat, started, buf_bytes(&serves));
    buf_release(&shares);
    buf_release(&serves);
}

static thole_status nodes_command_engine_row(struct listing *listing, const struct cluster *cluster,
                                             const struct cluster_engine *engine)
{
    switch (listing_row(listing, "thole.node.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: engine_line(listing, cluster, engine); break;
    case LISTING_JSON: form_engine(&listing->json, cluster, engine); break;
    case LISTING_NAME: listing_name(engine->node); break;
    }
    return listing_row_end(listing);
}

/* ---- workers ---- */

static void worker_line(const struct listing *listing, const struct roster_worker *worker)
{
    struct buf serves;
    buf_init(&serves, THOLE_NAME_BYTES_MAX + 128);
    buf_printf(&serves, "queue %.*s, %" PRIu64 " slots, %zu activities", THOLE_FMT(worker->queue),
               worker->slots, worker->activities_len);
    node_line(listing, worker->worker, "worker", "answers", "-", buf_bytes(&serves));
    buf_release(&serves);
}

static thole_status worker_row(struct listing *listing, const struct roster_worker *worker)
{
    switch (listing_row(listing, "thole.node.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: worker_line(listing, worker); break;
    case LISTING_JSON: form_worker(&listing->json, worker); break;
    case LISTING_NAME: listing_name(worker->worker); break;
    }
    return listing_row_end(listing);
}

static int nodes_command_list(const struct cli *cli, thole_client *client)
{
    struct cluster cluster;
    struct roster roster;
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.node_list.v1", "nodes", 0);
    thole_status status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, &error);
    thole_status const asked = roster_read(&roster, client, status == THOLE_OK ? &error : NULL);
    status = status == THOLE_OK ? asked : status;
    for (const struct cluster_engine *e = cluster.engines; e != NULL && status == THOLE_OK; e = e->next)
        status = nodes_command_engine_row(&listing, &cluster, e);
    for (const struct roster_worker *w = roster.first; w != NULL && status == THOLE_OK; w = w->next)
        status = worker_row(&listing, w);
    cluster_release(&cluster);
    roster_release(&roster);
    return listing_end(&listing, status, &error, "no engine and no worker runs in this namespace");
}

int command_nodes(struct cli *cli)
{
    int code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = nodes_command_list(cli, client);
    thole_client_close(client);
    return code;
}
