/* namespaces: those that the NATS account has. */
#include "listing.h"
#include "nats_connection.h"
#include "overview.h"
#include <inttypes.h>

static void table_row(const struct overview_namespace *found, bool first)
{
    if (first)
        (void)printf("%-36s  %10s  %8s  %10s  %s\n", "NAMESPACE", "PARTITIONS", "REPLICAS", "FORMAT",
                     "PAYLOAD MAX");
    (void)printf("%-36s  %10" PRIu64 "  %8" PRIu64 "  ", found->ns, found->partitions, found->replicas);
    if (found->format == 0)
        (void)printf("%10s  %" PRIu64 "\n", "not set up", found->payload_max);
    else
        (void)printf("%10" PRIu64 "  %" PRIu64 "\n", found->format, found->payload_max);
}

static void members(struct json *json, const struct overview_namespace *found)
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

static thole_status row(void *arg, const struct overview_namespace *found)
{
    struct listing *const listing = arg;
    switch (listing_row(listing, "thole.namespace.v1")) {
    case LISTING_STOP: return THOLE_CANCELLED;
    case LISTING_TABLE: table_row(found, listing->rows == 0); break;
    case LISTING_JSON: members(&listing->json, found); break;
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
    thole_status status = nats_connection_open(&cli->options, &connection, &error);
    if (status == THOLE_OK)
        status = overview_namespaces(connection, row, &listing, &error);
    connection_close(connection);
    return listing_end(&listing, status, &error, "no engine has set up a namespace here");
}
