/* partitions: who owns each. */
#include "client_internal.h"
#include "forms.h"
#include "listing.h"
#include "table.h"
#include "text.h"
#include <inttypes.h>

enum { WHY_BYTES = 4096 };

static const struct table_column partition_columns[] = {
    {"PARTITION", 9, 9, 0, true}, {"OWNER", 36, 12, 0, false},  {"STATE", 7, 7, 0, false},
    {"EPOCH", 10, 6, 1, true},    {"OPENED", 24, 24, 2, false},
};
static const struct table_column partition_lag_columns[] = {
    {"PARTITION", 9, 9, 0, true}, {"OWNER", 36, 12, 0, false},   {"STATE", 7, 7, 0, false},
    {"EPOCH", 10, 6, 1, true},    {"INBOX LAG", 10, 9, 0, true}, {"PROJECTION LAG", 14, 14, 0, true},
    {"OPENED", 24, 24, 2, false},
};

static void partition_line(uint32_t p, const struct cluster_partition *partition, bool lag)
{
    char opened[TIME_TEXT_BYTES];
    struct table table;
    if (lag)
        table_begin(&table, partition_lag_columns,
                    sizeof partition_lag_columns / sizeof *partition_lag_columns, p == 0);
    else
        table_begin(&table, partition_columns, sizeof partition_columns / sizeof *partition_columns, p == 0);
    text_time(partition->opened_ms, opened);
    table_number(&table, p);
    table_cell(&table, TONE_PLAIN, partition->owned ? partition->last : THOLE_STR("no owner"));
    table_text(&table, partition->state == CLUSTER_UNTOLD ? "?" : cluster_states[partition->state]);
    table_number(&table, partition->epoch);
    if (lag && partition->lag_known) {
        table_number(&table, partition->inbox_lag);
        table_number(&table, partition->projection_lag);
    } else if (lag) {
        table_text(&table, "?");
        table_text(&table, "?");
    }
    table_text(&table, opened);
    table_release(&table);
}

/* Why it was closed, whole: it is a sentence, and no cell. */
static void partition_why(const struct cluster_partition *partition)
{
    struct buf why;
    if (partition->why.len == 0 || (partition->state == CLUSTER_OPEN && partition->closed_lately == 0))
        return;
    buf_init(&why, WHY_BYTES);
    text_safe(&why, partition->why, WHY_BYTES / 4);
    (void)printf("%9s  closed %" PRIu64 " times in 5 minutes: %s\n", "", partition->closed_lately,
                 buf_cstr(&why));
    buf_release(&why);
}

static void partitions_command_table_row(uint32_t p, const struct cluster_partition *partition, bool lag)
{
    partition_line(p, partition, lag);
    partition_why(partition);
}

static int partitions_command_list(const struct cli *cli, thole_client *client)
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
        case LISTING_TABLE: partitions_command_table_row(p, &cluster.partitions[p], cli->options.lag); break;
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
    code = partitions_command_list(cli, client);
    thole_client_close(client);
    return code;
}
