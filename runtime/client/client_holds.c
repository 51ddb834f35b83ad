#include "client_holds.h"
#include "text.h"

enum { WORD_COLUMNS = 200 };

static thole_status say_held(void *arg, const struct hold *hold)
{
    char time[TIME_TEXT_BYTES];
    struct buf by, reason;
    buf_init(&by, REASON_BYTES_MAX);
    buf_init(&reason, REASON_BYTES_MAX);
    text_safe(&by, hold->by, WORD_COLUMNS);
    text_safe(&reason, hold->reason, WORD_COLUMNS);
    text_time(hold->time_ms, time);
    thole_status const status = thole_fail(
        arg, THOLE_CONFLICT, "instance \"%.*s\" is under legal hold since %s, by %s: %s; nothing was changed",
        THOLE_FMT(hold->instance), time, by.len == 0 ? "?" : buf_cstr(&by), buf_cstr(&reason));
    buf_release(&by);
    buf_release(&reason);
    return status;
}

thole_status client_check_hold(struct thole_client *client, thole_slice instance, thole_error *reterr)
{
    bool held;
    return holds_find(client->connection, client->topology.ns, instance, &held, say_held, reterr, reterr);
}
