/* Ephemeral push consumers. */
#include "push_consumer.h"
#include "jscan.h"
#include "json.h"
#include "subject.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

void push_name(const char *kind, const char *inbox, char ret[PUSH_NAME_BYTES])
{
    const char *const unique = strrchr(inbox, '.');
    const char *connection = unique;
    assert(unique != NULL);
    while (connection > inbox && connection[-1] != '.')
        connection--;
    (void)snprintf(ret, PUSH_NAME_BYTES, "%s_%.*s_%s", kind, (int)(unique - connection), connection,
                   unique + 1);
}

thole_status push_request(const struct push_options *options, char ret_subject[PUSH_API_BYTES],
                          struct buf *to, thole_error *reterr)
{
    struct json json;
    const char *filter = options->filter != NULL ? options->filter : options->last_per_subject ? ">" : NULL;
    int const len =
        snprintf(ret_subject, PUSH_API_BYTES, "$JS.API.CONSUMER.CREATE.%s.%s%s%s", options->stream,
                 options->name, filter == NULL ? "" : ".", filter == NULL ? "" : filter);
    if (len < 0 || len >= PUSH_API_BYTES) /* the form without the filter is as good */
        (void)snprintf(ret_subject, PUSH_API_BYTES, "$JS.API.CONSUMER.CREATE.%s.%s", options->stream,
                       options->name);
    buf_clear(to);
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "stream_name", options->stream);
    json_key(&json, "config");
    json_object(&json);
    json_member_text(&json, "name", options->name);
    if (options->last_per_subject) {
        json_member_text(&json, "deliver_policy", "last_per_subject");
    } else {
        json_member_text(&json, "deliver_policy", "by_start_sequence");
        json_member_number(&json, "opt_start_seq", options->from == 0 ? 1 : options->from);
    }
    if (filter != NULL)
        json_member_text(&json, "filter_subject", filter);
    json_member_text(&json, "ack_policy", "none");
    json_member_text(&json, "replay_policy", "instant");
    json_member_integer(&json, "max_deliver", 1);
    json_member_text(&json, "deliver_subject", options->deliver);
    json_member_bool(&json, "flow_control", true);
    json_member_integer(&json, "idle_heartbeat", (int64_t)options->heartbeat_ms * NANOS_PER_MS);
    json_member_integer(&json, "inactive_threshold", (int64_t)options->expires_ms * NANOS_PER_MS);
    json_member_integer(&json, "num_replicas", 1);
    json_member_bool(&json, "mem_storage", true);
    json_end(&json);
    json_end(&json);
    return buf_status(to) == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, THOLE_INVALID, "stream or filter name is too long");
}

void push_remove(struct link *link, const char *stream, const char *name)
{
    char subject[PUSH_API_BYTES], nobody[LINK_INBOX_BYTES];
    (void)snprintf(subject, sizeof subject, "$JS.API.CONSUMER.DELETE.%s.%s", stream, name);
    (void)snprintf(nobody, sizeof nobody, "%s.nobody", connection_inbox_root(link->connection));
    link_hint(link, subject, nobody, THOLE_STR("")); /* if it fails, the consumer expires */
}

bool push_flow_reply(struct link *link, thole_slice reply)
{
    char subject[256];
    if (reply.len == 0 || reply.len >= sizeof subject)
        return false;
    memcpy(subject, reply.ptr, reply.len);
    subject[reply.len] = 0;
    link_hint(link, subject, NULL, THOLE_STR(""));
    return true;
}

bool slice_uint(thole_slice text, uint64_t *ret)
{
    return json_uint(text, ret);
}

bool ack_parse(thole_slice reply, struct ack_meta *ret)
{
    enum { SHORT_TOKENS = 9, LONG_TOKENS = 11 };
    thole_slice tokens[LONG_TOKENS];
    size_t const n = subject_split(reply, tokens, LONG_TOKENS);
    if (n != SHORT_TOKENS && n < LONG_TOKENS)
        return false;
    /* the long form has domain and account hash before */
    const thole_slice *const at = tokens + (n == SHORT_TOKENS ? 2 : 4);
    if (!thole_slice_equal(tokens[0], THOLE_STR("$JS")) || !thole_slice_equal(tokens[1], THOLE_STR("ACK")))
        return false;
    ret->stream = at[0];
    ret->consumer = at[1];
    return json_uint(at[2], &ret->deliveries) && json_uint(at[3], &ret->stream_sequence) &&
           json_uint(at[4], &ret->consumer_sequence) && json_uint(at[5], &ret->stored_ns) &&
           json_uint(at[6], &ret->pending);
}
