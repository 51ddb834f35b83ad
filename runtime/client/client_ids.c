/* Which instances there are, from the streams alone. */
#include "client_internal.h"
#include "subject_list.h"

enum {
    SUBJECTS_MAX = 10000000, /* of a partition */
    TOKEN_KIND = 2,          /* thole.<ns>.hist.<p>.<id>.<execution> */
    TOKEN_ID = 4,
    TOKEN_EXECUTION = 5,
};

struct naming {
    client_id_fn *each;
    void *arg;
};

/* Not of an id whose instance was deleted, nor for which only events wait. */
static void on_subject(void *arg, thole_slice subject)
{
    const struct naming *naming = arg;
    thole_slice const execution = subject_nth(subject, TOKEN_EXECUTION);
    struct buf id;
    bool const history = thole_slice_equal(subject_nth(subject, TOKEN_KIND), THOLE_STR("hist")) &&
                         execution.len > 0 && execution.ptr[0] >= '1' && execution.ptr[0] <= '9';
    if (!history)
        return;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    if (subject_token_decode(subject_nth(subject, TOKEN_ID), &id, NULL) == THOLE_OK)
        naming->each(naming->arg, buf_bytes(&id));
    buf_release(&id);
}

thole_status client_history_ids(struct thole_client *client, client_id_fn *each, void *arg,
                                thole_error *reterr)
{
    struct naming naming = {each, arg};
    thole_status status = THOLE_OK;
    for (uint32_t p = 0; p < client->topology.partitions && status == THOLE_OK; p++) {
        struct buf stream;
        struct stream_bounds bounds = {0};
        buf_init(&stream, STREAM_NAME_BYTES_MAX);
        status = stream_name(&stream, client->topology.ns, "HIST", p, reterr);
        if (status == THOLE_OK)
            status = place_status(stream_bounds(client->connection, buf_cstr(&stream), &bounds, reterr),
                                  buf_cstr(&stream), reterr);
        if (status == THOLE_OK && bounds.messages > 0)
            status = stream_subjects(client->connection, buf_cstr(&stream), bounds.last, SUBJECTS_MAX,
                                     on_subject, &naming, reterr);
        buf_release(&stream);
    }
    return status;
}
