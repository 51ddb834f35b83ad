/* namespaces: those that the NATS account has. */
#include "listing.h"
#include "nats_connection.h"
#include "overview.h"
#include "table.h"
#include <inttypes.h>

static const struct table_column namespace_columns[] = {
    {"NAMESPACE", 36, 12, 0, false}, {"PARTITIONS", 10, 10, 0, true},   {"REPLICAS", 8, 8, 1, true},
    {"FORMAT", 10, 10, 0, true},     {"PAYLOAD MAX", 20, 11, 2, false},
};

static void namespaces_command_table_row(const struct overview_namespace *found, bool first)
{
    struct table table;
    table_begin(&table, namespace_columns, sizeof namespace_columns / sizeof *namespace_columns, first);
    table_text(&table, found->ns);
    table_number(&table, found->partitions);
    table_number(&table, found->replicas);
    if (found->format == 0)
        table_text(&table, "not set up");
    else
        table_number(&table, found->format);
    table_number(&table, found->payload_max);
    table_release(&table);
}

static void namespaces_command_members(struct json *json, const struct overview_namespace *found)
{
    json_member_text(json, "namespace", found->ns);
    json_member_number(json, "partitions", found->partitions);
    json_member_number(json, "replicas", found->replicas);
    json_key(json, "format");
    if (found->format == 0)
        json_null(json);
    else
        json_number(json, found->format);
    json_member_number(json, "payload_max", found->payload_max);
}

static thole_status namespaces_command_row(void *arg, const struct overview_namespace *found)
{
    struct listing *const listing = arg;
    switch (listing_row(listing, "thole.namespace.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: namespaces_command_table_row(found, listing->rows == 0); break;
    case LISTING_JSON: namespaces_command_members(&listing->json, found); break;
    case LISTING_NAME: listing_name(thole_slice_from(found->ns)); break;
    }
    return listing_row_end(listing);
}

int command_namespaces(struct cli *cli)
{
    struct connection *connection = NULL;
    struct listing listing;
    thole_error error = {.status = THOLE_OK};
    listing_begin(&listing, cli, "thole.namespace_list.v1", "namespaces", 0);
    error.status = nats_connection_open(&cli->options, &connection, &error);
    if (error.status != THOLE_OK)
        return cli_complain_connect(cli, &error);
    thole_status const status = overview_namespaces(connection, namespaces_command_row, &listing, &error);
    connection_close(connection);
    return listing_end(&listing, status, &error, "no engine has set up a namespace here");
}
