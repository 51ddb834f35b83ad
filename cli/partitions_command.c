/* partitions: who owns each. */
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "text.h"
#include <inttypes.h>

enum { CELL_BYTES = 1024, OWNER_COLUMNS = 36 };

static void table_row(uint32_t p, const struct cluster_partition *partition, bool lag)
{
    char opened[TIME_TEXT_BYTES];
    struct buf owner;
    if (p == 0)
        (void)printf("%9s  %-36s  %10s  %s%s\n", "PARTITION", "OWNER", "EPOCH",
                     lag ? " INBOX LAG  PROJECTION LAG  " : "", "OPENED");
    buf_init(&owner, CELL_BYTES);
    if (partition->owned)
        text_safe(&owner, partition->last, THOLE_ID_BYTES_MAX);
    else
        buf_printf(&owner, "no owner");
    text_time(partition->opened_ms, opened);
    (void)printf("%9" PRIu32 "  %-*s  %10" PRIu64 "  ", p, OWNER_COLUMNS, buf_cstr(&owner), partition->epoch);
    if (lag && partition->lag_known)
        (void)printf("%10" PRIu64 "  %14" PRIu64 "  ", partition->inbox_lag, partition->projection_lag);
    else if (lag)
        (void)printf("%10s  %14s  ", "?", "?");
    (void)printf("%s\n", opened);
    buf_release(&owner);
}

static int list(const struct cli *cli, thole_client *client)
{
    struct cluster cluster;
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.partition_list.v1", "partitions", 0);
    thole_status status =
        cluster_read(&cluster, client->connection, client->topology.ns, client->topology.partitions, &error);
    if (status == THOLE_OK && cli->options.lag)
        status = cluster_read_lags(&cluster, client, &error);
    for (uint32_t p = 0; p < cluster.partitions_len && status == THOLE_OK; p++) {
        switch (listing_row(&listing, "thole.partition.v1")) {
        case LISTING_STOP: break;
        case LISTING_TABLE: table_row(p, &cluster.partitions[p], cli->options.lag); break;
        case LISTING_JSON: form_partition(&listing.json, p, &cluster.partitions[p]); break;
        case LISTING_NAME: (void)printf("%" PRIu32 "\n", p); break;
        }
        status = listing_row_end(&listing);
    }
    cluster_release(&cluster);
    return listing_end(&listing, status, &error, "");
}

int command_partitions(struct cli *cli)
{
    int code;
    thole_client *client = cli_connect(cli, &code);
    if (client == NULL)
        return code;
    code = list(cli, client);
    thole_client_close(client);
    return code;
}
