/* nodes: the engines and workers that live. */
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>

enum { CELL_BYTES = 1024, SHARES_BYTES = 32 * 1024, NODE_COLUMNS = 36 };

static void head(const struct listing *listing)
{
    if (listing->rows == 0)
        (void)printf("%-36s  %-6s  %9s  %-24s  %s\n", "NODE", "ROLE", "HEARTBEAT", "STARTED", "SERVES");
}

static void name_cell(thole_slice name)
{
    struct buf safe;
    buf_init(&safe, CELL_BYTES);
    text_safe(&safe, name, THOLE_ID_BYTES_MAX);
    (void)printf("%-*s  ", NODE_COLUMNS, buf_cstr(&safe));
    buf_release(&safe);
}

/* ---- engines ---- */

static void engine_line(const struct listing *listing, const struct cluster *cluster,
                        const struct cluster_engine *engine)
{
    char started[TIME_TEXT_BYTES];
    struct buf shares;
    size_t shares_len;
    buf_init(&shares, SHARES_BYTES);
    cluster_shares(cluster, engine->node, &shares, &shares_len);
    head(listing);
    text_time(engine->started_ms, started);
    name_cell(engine->node);
    (void)printf("%-6s  %6" PRIu64 " ms  %-24s  ", "engine", engine->heartbeat_ms, started);
    if (shares_len == 0)
        (void)printf("no partition\n");
    else
        (void)printf("%zu partition%s: %s\n", shares_len, shares_len == 1 ? "" : "s", buf_cstr(&shares));
    buf_release(&shares);
}

static thole_status engine_row(struct listing *listing, const struct cluster *cluster,
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

static thole_status worker_row(struct listing *listing, const struct roster_worker *worker)
{
    switch (listing_row(listing, "thole.node.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE:
        head(listing);
        name_cell(worker->worker);
        (void)printf("%-6s  %9s  %-24s  queue %.*s, %" PRIu64 " slots, %zu activities\n", "worker", "answers",
                     "-", THOLE_FMT(worker->queue), worker->slots, worker->activities_len);
        break;
    case LISTING_JSON: form_worker(&listing->json, worker); break;
    case LISTING_NAME: listing_name(worker->worker); break;
    }
    return listing_row_end(listing);
}

static int list(const struct cli *cli, thole_client *client)
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
        status = engine_row(&listing, &cluster, e);
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
    code = list(cli, client);
    thole_client_close(client);
    return code;
}
