/* The durable consumer of a queue. */
#include "api.h"
#include "jscan.h"
#include "json.h"
#include "link.h"
#include "message.h"
#include "reader.h"
#include "topology.h"
#include "topology_spec.h"
#include "work_names.h"
#include <stdio.h>
#include <string.h>

enum {
    LEASE_MS_DEFAULT = 30000,
    QUEUE_JSON_MAX = 4096,
    /* More than the slots of all workers of a queue together; the queue stalls when it is reached. */
    MAX_ACK_PENDING = 100000,
    MAX_ACK_PENDING_LEAST = 1000, /* of an existing consumer without a limit of thole */
    MAX_WAITING = 4096,
    LIMIT_TRIES = 5,
};

/* The properties of a consumer that may differ. */
struct queue_state {
    uint64_t lease_ms, pending, ack_pending;
    uint64_t delivered, deliveries; /* the last sequence; how many there were */
    int64_t ack_pending_max;        /* <= 0: no limit */
};

/* @p limit 0: none. */
static void consumer_json(const struct work_names *names, const char *action, uint64_t lease_ms,
                          uint64_t limit, struct buf *to)
{
    struct json json;
    json_to_buf(&json, to);
    json_object(&json);
    json_member_text(&json, "stream_name", names->stream);
    json_member_text(&json, "action", action);
    json_key(&json, "config");
    json_object(&json);
    json_member_text(&json, "durable_name", names->consumer);
    json_member_text(&json, "name", names->consumer);
    json_member_text(&json, "filter_subject", names->filter);
    json_member_text(&json, "deliver_policy", "all");
    json_member_text(&json, "replay_policy", "instant");
    json_member_text(&json, "ack_policy", "explicit");
    json_member_integer(&json, "ack_wait", (int64_t)lease_ms * NANOS_PER_MS);
    json_member_integer(&json, "max_deliver", -1);
    json_member_integer(&json, "max_ack_pending", limit == 0 ? MAX_ACK_PENDING : (int64_t)limit);
    json_member_integer(&json, "max_waiting", MAX_WAITING);
    json_member_integer(&json, "num_replicas", 0);
    json_end(&json);
    json_end(&json);
}

static thole_status differs(const struct work_names *names, const char *field, thole_slice there,
                            const char *needed, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_INVALID,
        "consumer %s of stream %s has %s %.*s, but %s is needed: stop the queue's workers, remove the "
        "consumer with `nats consumer rm` and start again",
        names->consumer, names->stream, field, there.len > 100 ? 100 : (int)there.len,
        (const char *)there.ptr, needed);
}

static thole_status want_text(const struct work_names *names, thole_slice config, const char *field,
                              const char *needed, thole_error *reterr)
{
    thole_slice there;
    if (!json_find(config, field, &there))
        there = THOLE_STR("\"\"");
    return json_text_is(there, needed) ? THOLE_OK : differs(names, field, there, needed, reterr);
}

static thole_status verify_consumer(const struct work_names *names, thole_slice config, uint64_t lease_ms,
                                    struct queue_state *ret, thole_error *reterr)
{
    char has[DURATION_BYTES], needed[DURATION_BYTES];
    uint64_t ack_wait = 0;
    int64_t n = 0;
    thole_slice there;
    THOLE_TRY(want_text(names, config, "ack_policy", "explicit", reterr));
    THOLE_TRY(want_text(names, config, "deliver_policy", "all", reterr));
    THOLE_TRY(want_text(names, config, "replay_policy", "instant", reterr));
    THOLE_TRY(want_text(names, config, "filter_subject", names->filter, reterr));
    THOLE_TRY(want_text(names, config, "deliver_subject", "", reterr));
    if (json_find(config, "backoff", &there))
        return differs(names, "backoff", there, "none", reterr);
    if (json_find(config, "max_deliver", &there) && (!json_int(there, &n) || n > 0))
        return differs(names, "max_deliver", there, "no limit", reterr);
    if (json_find(config, "max_ack_pending", &there) && !json_int(there, &ret->ack_pending_max))
        return differs(names, "max_ack_pending", there, "a number", reterr);
    if (!json_find(config, "ack_wait", &there) || !json_uint(there, &ack_wait) || ack_wait < NANOS_PER_MS)
        return differs(names, "ack_wait", THOLE_STR("absent"), "a time", reterr);
    if (lease_ms != 0 && lease_ms != ack_wait / NANOS_PER_MS) {
        (void)duration_text(needed, lease_ms * NANOS_PER_MS);
        return differs(names, "ack_wait", duration_text(has, ack_wait), needed, reterr);
    }
    ret->lease_ms = ack_wait / NANOS_PER_MS;
    return THOLE_OK;
}

static thole_status verify_queue(struct connection *connection, const struct work_names *names,
                                 uint64_t lease_ms, struct queue_state *ret, thole_error *reterr)
{
    char target[API_SUBJECT_BYTES];
    struct buf answer;
    thole_slice config, delivered, there;
    (void)snprintf(target, sizeof target, "%s.%s", names->stream, names->consumer);
    *ret = (struct queue_state){.lease_ms = 0};
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "CONSUMER.INFO", target, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK && !json_find(buf_bytes(&answer), "config", &config))
        status = thole_fail(reterr, THOLE_CORRUPT, "consumer %s: the server's answer has no config",
                            names->consumer);
    else if (status == THOLE_OK)
        status = verify_consumer(names, config, lease_ms, ret, reterr);
    if (status == THOLE_OK && !(json_path(buf_bytes(&answer), "delivered.stream_seq", &delivered) &&
                                json_uint(delivered, &ret->delivered)))
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "consumer %s: the server's answer has no delivered.stream_seq", names->consumer);
    if (status == THOLE_OK && json_path(buf_bytes(&answer), "delivered.consumer_seq", &there))
        (void)json_uint(there, &ret->deliveries);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "num_pending", &there))
        (void)json_uint(there, &ret->pending);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "num_ack_pending", &there))
        (void)json_uint(there, &ret->ack_pending);
    buf_release(&answer);
    return status;
}

/* Reads first the last delivered sequence, then the stream's last one, which only grows unless the stream
 * went back. */
static thole_status is_ahead(struct connection *connection, const struct work_names *names,
                             uint64_t delivered, bool *ret, thole_error *reterr)
{
    struct stream_bounds bounds = {0};
    THOLE_TRY(stream_bounds(connection, names->stream, &bounds, reterr));
    *ret = delivered > bounds.last;
    return THOLE_OK;
}

static thole_status remove_queue(struct connection *connection, const struct work_names *names,
                                 thole_error *reterr)
{
    char target[API_SUBJECT_BYTES];
    struct buf answer;
    (void)snprintf(target, sizeof target, "%s.%s", names->stream, names->consumer);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(connection, "CONSUMER.DELETE", target, THOLE_STR(""), &answer, NULL, reterr);
    buf_release(&answer);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status; /* another worker was first */
}

/* @p action "create" or "update". */
static thole_status make_queue(struct connection *connection, const struct work_names *names,
                               const char *action, uint64_t lease_ms, uint64_t limit, thole_error *reterr)
{
    char target[API_SUBJECT_BYTES];
    struct buf json, answer;
    (void)snprintf(target, sizeof target, "%s.%s.%s", names->stream, names->consumer, names->filter);
    buf_init(&json, QUEUE_JSON_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    consumer_json(names, action, lease_ms, limit, &json);
    thole_status status =
        api_call(connection, "CONSUMER.CREATE", target, buf_bytes(&json), &answer, NULL, reterr);
    if (status == THOLE_CONFLICT) /* another worker was first: verification decides */
        status = THOLE_OK;
    buf_release(&json);
    buf_release(&answer);
    return status;
}

/* ---- how many at once ---- */

static void limit_subject(const struct work_names *names, char ret[API_SUBJECT_BYTES])
{
    (void)snprintf(ret, API_SUBJECT_BYTES, "$KV.THOLE_%s_CONFIG.queue_%s", names->ns, names->queue);
}

static thole_status limit_read(struct connection *connection, const struct work_names *names, uint64_t *ret,
                               thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[API_SUBJECT_BYTES];
    uint64_t sequence;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", names->ns);
    limit_subject(names, subject);
    buf_init(&body, 64);
    *ret = 0;
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence != 0 && body.len > 0 && !json_uint(buf_bytes(&body), ret))
        status = thole_fail(reterr, THOLE_CORRUPT, "%s is \"%.*s\", but a number is needed", subject,
                            THOLE_FMT(buf_bytes(&body)));
    buf_release(&body);
    return status;
}

static bool limit_holds(const struct queue_state *state, uint64_t limit)
{
    int64_t const has = state->ack_pending_max;
    return limit == 0 ? has <= 0 || has >= MAX_ACK_PENDING_LEAST : has == (int64_t)limit;
}

/* After a change of the consumer checks whether another limit was written meanwhile, so that the last one
 * written stays. */
static thole_status limit_settle(struct connection *connection, const struct work_names *names,
                                 const struct queue_state *state, thole_error *reterr)
{
    uint64_t limit, again;
    THOLE_TRY(limit_read(connection, names, &limit, reterr));
    if (limit_holds(state, limit))
        return THOLE_OK;
    for (int i = 0; i < LIMIT_TRIES; i++) {
        THOLE_TRY(make_queue(connection, names, "update", state->lease_ms, limit, reterr));
        THOLE_TRY(limit_read(connection, names, &again, reterr));
        if (again == limit)
            return THOLE_OK;
        limit = again;
    }
    return thole_fail(reterr, THOLE_UNAVAILABLE, "the limit of queue %s changes all the time: try again",
                      names->queue);
}

thole_status topology_queue_limit(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t *ret, thole_error *reterr)
{
    struct work_names names;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    return limit_read(connection, &names, ret, reterr);
}

thole_status topology_queue_lease(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t *ret_lease_ms, uint64_t *ret_delivered, thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    thole_status const status = verify_queue(connection, &names, 0, &state, reterr);
    *ret_lease_ms = state.lease_ms;
    *ret_delivered = state.deliveries;
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

thole_status topology_queue_depth(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t *ret_pending, uint64_t *ret_ack_pending, thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    THOLE_TRY(verify_queue(connection, &names, 0, &state, reterr));
    *ret_pending = state.pending;
    *ret_ack_pending = state.ack_pending;
    return THOLE_OK;
}

thole_status topology_limit_queue(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t limit, thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    struct buf answer;
    thole_slice refused;
    char subject[API_SUBJECT_BYTES], text[24];
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    if (limit > MAX_ACK_PENDING)
        return thole_fail(reterr, THOLE_INVALID, "at most %d at once can be a limit", MAX_ACK_PENDING);
    limit_subject(&names, subject);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)limit);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = connection_request(connection, subject, thole_slice_from(text), &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &refused))
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                            THOLE_FMT(refused));
    buf_release(&answer);
    THOLE_TRY(status);
    status = verify_queue(connection, &names, 0, &state, reterr);
    if (status == THOLE_NOT_FOUND) /* its first worker creates it with the limit */
        return THOLE_OK;
    return status == THOLE_OK ? limit_settle(connection, &names, &state, reterr) : status;
}

thole_status topology_ensure_queue(struct connection *connection, const char *ns, thole_slice queue,
                                   uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_anew,
                                   thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    uint64_t limit = 0;
    bool ahead = false;
    if (ret_anew != NULL)
        *ret_anew = false;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    if (lease_ms != 0 && lease_ms < 1000)
        return thole_fail(reterr, THOLE_INVALID, "a lease of %llu ms is too short, at least 1000 are needed",
                          (unsigned long long)lease_ms);
    thole_status status = verify_queue(connection, &names, lease_ms, &state, reterr);
    if (status == THOLE_OK) {
        *ret_lease_ms = state.lease_ms;
        THOLE_TRY(is_ahead(connection, &names, state.delivered, &ahead, reterr));
        if (!ahead)
            return limit_settle(connection, &names, &state, reterr);
        lease_ms = state.lease_ms;
        status = remove_queue(connection, &names, reterr);
    }
    if (status != THOLE_OK && status != THOLE_NOT_FOUND)
        return status;
    THOLE_TRY(limit_read(connection, &names, &limit, reterr));
    THOLE_TRY(
        make_queue(connection, &names, "create", lease_ms != 0 ? lease_ms : LEASE_MS_DEFAULT, limit, reterr));
    if (ret_anew != NULL)
        *ret_anew = true;
    THOLE_TRY(verify_queue(connection, &names, lease_ms, &state, reterr));
    *ret_lease_ms = state.lease_ms;
    return limit_settle(connection, &names, &state, reterr);
}
