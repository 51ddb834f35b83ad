/* The node registry. */
#include "nodes.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "memory.h"
#include "message.h"
#include "reader.h"
#include "subject.h"
#include <stdio.h>
#include <stdlib.h>

enum { NODE_SUBJECT_BYTES = 240, TOKEN_NODE = 2 };

/* $KV.THOLE_<ns>_NODES.<node> */
static thole_status node_subject(const char *ns, thole_slice node, char ret[NODE_SUBJECT_BYTES],
                                 thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(name_check(node, "node", reterr));
    (void)snprintf(ret, NODE_SUBJECT_BYTES, "$KV.THOLE_%s_NODES.%.*s", ns, THOLE_FMT(node));
    return THOLE_OK;
}

static thole_status nodes_write_key(struct connection *connection, const char *ns, thole_slice node,
                                    const struct header *headers, size_t headers_len, thole_slice value,
                                    thole_error *reterr)
{
    char subject[NODE_SUBJECT_BYTES];
    struct buf answer;
    thole_slice found;
    THOLE_TRY(node_subject(ns, node, subject, reterr));
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status =
        connection_request_with(connection, subject, headers, headers_len, value, &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &found))
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                            THOLE_FMT(found));
    else if (status == THOLE_OK && !json_find(buf_bytes(&answer), "seq", &found))
        status =
            thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: nothing says that it is stored", subject);
    buf_release(&answer);
    return status;
}

thole_status nodes_put(struct connection *connection, const char *ns, thole_slice node, thole_slice heartbeat,
                       thole_error *reterr)
{
    return nodes_write_key(connection, ns, node, NULL, 0, heartbeat, reterr);
}

thole_status nodes_delete(struct connection *connection, const char *ns, thole_slice node,
                          thole_error *reterr)
{
    struct header const mark = {"KV-Operation", THOLE_STR("DEL")};
    return nodes_write_key(connection, ns, node, &mark, 1, THOLE_STR(""), reterr);
}

struct nodes_watch {
    struct ordered_reader *reader;
    nodes_fn *each;
    void *arg;
};

static void nodes_on_entry(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    struct nodes_watch *watch = arg;
    thole_slice const node = subject_nth(delivery->subject, TOKEN_NODE);
    thole_slice const operation = delivery_header(delivery, "KV-Operation");
    (void)sequence;
    if (name_check(node, "node", NULL) != THOLE_OK || subject_nth(delivery->subject, TOKEN_NODE + 1).len > 0)
        return; /* not written by an engine */
    watch->each(watch->arg, node, operation.len > 0 ? (thole_slice){NULL, 0} : delivery->body,
                delivery_stored_ns(delivery));
}

thole_status nodes_watch_open(struct connection *connection, const char *ns, nodes_fn *each, void *arg,
                              struct nodes_watch **ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], filter[NODE_SUBJECT_BYTES];
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_NODES", ns);
    (void)snprintf(filter, sizeof filter, "$KV.THOLE_%s_NODES.>", ns);
    struct nodes_watch *watch = memory_new(sizeof *watch);
    watch->each = each;
    watch->arg = arg;
    struct ordered_reader_options const options = {
        .stream = stream, .filter = filter, .last_per_subject = true, .each = nodes_on_entry, .arg = watch};
    thole_status const status = ordered_reader_open(connection, &options, &watch->reader, reterr);
    if (status != THOLE_OK) {
        free(watch);
        return status;
    }
    *ret = watch;
    return THOLE_OK;
}

void nodes_watch_close(struct nodes_watch *watch)
{
    if (watch == NULL)
        return;
    ordered_reader_close(watch->reader);
    free(watch);
}
