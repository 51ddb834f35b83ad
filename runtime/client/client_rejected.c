/* Messages that no engine could take. */
#include "client_internal.h"
#include "rejected.h"

enum { REJECTED_LIMIT_DEFAULT = 100 };

static thole_status client_rejected_hand_over(const struct rejected_item *item, thole_rejected_fn *each,
                                              void *arg)
{
    thole_rejected_info const info = {.code = item->code,
                                      .reason = item->reason,
                                      .subject = item->subject,
                                      .payload = item->payload,
                                      .bytes = item->bytes,
                                      .stored_ms = item->stored_ns / 1000000,
                                      .sequence = item->sequence,
                                      .number = item->number,
                                      .partition = item->partition};
    return each(arg, &info);
}

thole_status thole_client_rejected(thole_client *client, uint64_t behind, uint64_t limit,
                                   thole_rejected_fn *each, void *arg, thole_error *reterr)
{
    struct rejected_list list = {.behind = behind, .most = limit == 0 ? REJECTED_LIMIT_DEFAULT : limit};
    arena_init(&list.arena, CLIENT_ARENA_MAX);
    thole_status status = rejected_read(client->connection, client->topology.ns, &list, reterr);
    if (status == THOLE_NOT_FOUND)
        status = thole_fail(
            reterr, status,
            "stream THOLE_%s_REJECTED is not there: engines of this version make it when they start",
            client->topology.ns);
    for (size_t i = list.len; i > 0 && status == THOLE_OK; i--)
        status = client_rejected_hand_over(&list.items[i - 1], each, arg);
    arena_release(&list.arena);
    return status;
}
