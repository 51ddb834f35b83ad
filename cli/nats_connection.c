#include "nats_connection.h"
#include "inbox_prefix.h"

enum { ROUND_TRIP_MS = 5000 };

thole_status nats_connection_open(const struct cli_options *options, struct connection **ret,
                                  thole_error *reterr)
{
    uint64_t const timeout_ms = options->timeout_ms != 0 ? options->timeout_ms : ROUND_TRIP_MS;
    char inbox[INBOX_PREFIX_BYTES_MAX + 1];
    struct inbox_owner const owner = {.ns = options->ns, .role = "client"};
    struct connection_options const settings = {
        .url = options->nats_url,
        .creds = options->nats_creds,
        .ca = options->nats_ca,
        .cert = options->nats_cert,
        .key = options->nats_key,
        .server_name = options->nats_server_name,
        .inbox = inbox_prefix_or_own(options->nats_inbox, &owner, inbox),
        .api_prefix = options->nats_api_prefix,
        .name = "thole",
        .connect_timeout_ms = timeout_ms,
        .request_timeout_ms = timeout_ms,
    };
    *ret = NULL;
    thole_status const status = connection_open(&settings, ret, reterr);
    if (status != THOLE_OK)
        *ret = NULL;
    return status;
}
