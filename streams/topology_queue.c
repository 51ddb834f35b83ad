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
    LEASE_MS_LEAST = 1000,
    LEASE_MS_MOST = 24 * 60 * 60 * 1000, /* of who may ask for one */
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
static void topology_queue_consumer_json(const struct work_names *names, const char *action,
                                         uint64_t lease_ms, uint64_t limit, struct buf *to)
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

struct queue_comparing {
    const struct work_names *names;
    thole_slice config;
    defect_fn *each;
    void *arg;
};

static void queue_differs(const struct queue_comparing *c, const char *field, thole_slice there,
                          const char *needed)
{
    struct defect defect = {.object = DEFECT_QUEUE, .weight = DEFECT_REFUSED, .cure = CURE_FIX};
    (void)snprintf(defect.name, sizeof defect.name, "queue %s", c->names->queue);
    (void)snprintf(defect.field, sizeof defect.field, "%s", field);
    (void)snprintf(defect.found, sizeof defect.found, "%.*s", there.len > 100 ? 100 : (int)there.len,
                   (const char *)there.ptr);
    (void)snprintf(defect.needed, sizeof defect.needed, "%s", needed);
    (void)snprintf(defect.remedy, sizeof defect.remedy, "thole doctor -n %s --fix", c->names->ns);
    c->each(c->arg, &defect);
}

static void queue_want_text(const struct queue_comparing *c, const char *field, const char *needed)
{
    thole_slice there;
    if (!json_find(c->config, field, &there))
        there = THOLE_STR("\"\"");
    if (!json_text_is(there, needed))
        queue_differs(c, field, there, needed);
}

static void queue_want_lease(const struct queue_comparing *c, uint64_t lease_ms)
{
    char has[DURATION_BYTES], needed[DURATION_BYTES];
    uint64_t ack_wait = 0;
    thole_slice there;
    if (!json_find(c->config, "ack_wait", &there) || !json_uint(there, &ack_wait) ||
        ack_wait < NANOS_PER_MS) {
        queue_differs(c, "ack_wait", THOLE_STR("absent"), "a time");
    } else if (lease_ms != 0 && lease_ms != ack_wait / NANOS_PER_MS) {
        (void)duration_text(needed, lease_ms * NANOS_PER_MS);
        queue_differs(c, "ack_wait", duration_text(has, ack_wait), needed);
    }
}

static void queue_compare(const struct queue_comparing *c, uint64_t lease_ms)
{
    int64_t n = 0;
    thole_slice there;
    queue_want_text(c, "ack_policy", "explicit");
    queue_want_text(c, "deliver_policy", "all");
    queue_want_text(c, "replay_policy", "instant");
    queue_want_text(c, "filter_subject", c->names->filter);
    queue_want_text(c, "deliver_subject", "");
    if (json_find(c->config, "backoff", &there))
        queue_differs(c, "backoff", there, "none");
    if (json_find(c->config, "max_deliver", &there) && (!json_int(there, &n) || n > 0))
        queue_differs(c, "max_deliver", there, "no limit");
    if (json_find(c->config, "max_ack_pending", &there) && !json_int(there, &n))
        queue_differs(c, "max_ack_pending", there, "a number");
    queue_want_lease(c, lease_ms);
}

void topology_compare_queue(const char *ns, thole_slice queue, thole_slice info, defect_fn *each, void *arg)
{
    struct work_names names;
    struct queue_comparing compare = {&names, {NULL, 0}, each, arg};
    thole_slice paused;
    if (work_names_make(ns, queue, &names, NULL) != THOLE_OK || !json_find(info, "config", &compare.config))
        return; /* none of ours */
    queue_compare(&compare, 0);
    if (json_find(info, "paused", &paused) && json_is_true(paused))
        queue_differs(&compare, "paused", paused, "false");
}

struct queue_first {
    const struct work_names *names;
    thole_status status;
    thole_error *reterr;
};

static void queue_refuse_first(void *arg, const struct defect *defect)
{
    struct queue_first *const first = arg;
    if (first->status == THOLE_OK && strcmp(defect->field, "ack_wait") == 0)
        first->status = thole_fail(first->reterr, THOLE_INVALID,
                                   "consumer %s of stream %s has ack_wait %s, but %s is needed: take the "
                                   "lease that the queue has, by leaving out --lease, or change it with "
                                   "`thole queue lease %s`",
                                   first->names->consumer, first->names->stream, defect->found,
                                   defect->needed, first->names->queue);
    else if (first->status == THOLE_OK)
        first->status = thole_fail(
            first->reterr, THOLE_INVALID,
            "consumer %s of stream %s has %s %s, but %s is needed: stop the queue's workers, remove the "
            "consumer with `nats consumer rm` and start again",
            first->names->consumer, first->names->stream, defect->field, defect->found, defect->needed);
}

static thole_status verify_consumer(const struct work_names *names, thole_slice config, uint64_t lease_ms,
                                    struct queue_state *ret, thole_error *reterr)
{
    struct queue_first first = {names, THOLE_OK, reterr};
    uint64_t ack_wait = 0;
    thole_slice there;
    queue_compare(&(struct queue_comparing){names, config, queue_refuse_first, &first}, lease_ms);
    THOLE_TRY(first.status);
    if (json_find(config, "max_ack_pending", &there))
        (void)json_int(there, &ret->ack_pending_max);
    if (json_find(config, "ack_wait", &there))
        (void)json_uint(there, &ack_wait);
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
    topology_queue_consumer_json(names, action, lease_ms, limit, &json);
    thole_status status =
        api_call(connection, "CONSUMER.CREATE", target, buf_bytes(&json), &answer, NULL, reterr);
    if (status == THOLE_CONFLICT) /* another worker was first: verification decides */
        status = THOLE_OK;
    buf_release(&json);
    buf_release(&answer);
    return status;
}

/* ---- how many at once ---- */

/* Settings of a queue in CONFIG: its limit, and the lease that its consumer has, for when that is lost. */
static const char setting_limit[] = "queue", setting_lease[] = "lease";

static void setting_subject(const struct work_names *names, const char *setting, char ret[API_SUBJECT_BYTES])
{
    (void)snprintf(ret, API_SUBJECT_BYTES, "$KV.THOLE_%s_CONFIG.%s_%s", names->ns, setting, names->queue);
}

static thole_status setting_write(struct connection *connection, const struct work_names *names,
                                  const char *setting, uint64_t value, thole_error *reterr)
{
    struct buf answer;
    thole_slice refused;
    char subject[API_SUBJECT_BYTES], text[24];
    setting_subject(names, setting, subject);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = connection_request(connection, subject, thole_slice_from(text), &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &refused))
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                            THOLE_FMT(refused));
    buf_release(&answer);
    return status;
}

static thole_status setting_read(struct connection *connection, const struct work_names *names,
                                 const char *setting, uint64_t *ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[API_SUBJECT_BYTES];
    uint64_t sequence;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", names->ns);
    setting_subject(names, setting, subject);
    buf_init(&body, 64);
    *ret = 0;
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence != 0 && body.len > 0 && !json_uint(buf_bytes(&body), ret))
        status = thole_fail(reterr, THOLE_CORRUPT, "%s is \"%.*s\", but a number is needed", subject,
                            THOLE_FMT(buf_bytes(&body)));
    buf_release(&body);
    return status;
}

static thole_status limit_read(struct connection *connection, const struct work_names *names, uint64_t *ret,
                               thole_error *reterr)
{
    return setting_read(connection, names, setting_limit, ret, reterr);
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

static thole_status topology_queue_check_lease(uint64_t lease_ms, thole_error *reterr)
{
    if (lease_ms == 0 || (lease_ms >= LEASE_MS_LEAST && lease_ms <= LEASE_MS_MOST))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "a lease of %llu ms is too %s, %s %d are needed",
                      (unsigned long long)lease_ms, lease_ms < LEASE_MS_LEAST ? "short" : "long",
                      lease_ms < LEASE_MS_LEAST ? "at least" : "at most",
                      lease_ms < LEASE_MS_LEAST ? (int)LEASE_MS_LEAST : (int)LEASE_MS_MOST);
}

thole_status topology_lease_queue(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t lease_ms, thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    uint64_t limit = 0;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    if (lease_ms == 0)
        return thole_fail(reterr, THOLE_INVALID, "a lease of 0 ms is none");
    THOLE_TRY(topology_queue_check_lease(lease_ms, reterr));
    THOLE_TRY(verify_queue(connection, &names, 0, &state, reterr));
    THOLE_TRY(limit_read(connection, &names, &limit, reterr));
    THOLE_TRY(make_queue(connection, &names, "update", lease_ms, limit, reterr));
    THOLE_TRY(verify_queue(connection, &names, lease_ms, &state, reterr));
    THOLE_TRY(limit_settle(connection, &names, &state, reterr));
    return setting_write(connection, &names, setting_lease, lease_ms, reterr);
}

thole_status topology_keep_lease(struct connection *connection, const char *ns, thole_slice queue,
                                 uint64_t lease_ms, thole_error *reterr)
{
    struct work_names names;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    return setting_write(connection, &names, setting_lease, lease_ms, reterr);
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
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    if (limit > MAX_ACK_PENDING)
        return thole_fail(reterr, THOLE_INVALID, "at most %d at once can be a limit", MAX_ACK_PENDING);
    THOLE_TRY(setting_write(connection, &names, setting_limit, limit, reterr));
    thole_status const status = verify_queue(connection, &names, 0, &state, reterr);
    if (status == THOLE_NOT_FOUND) /* made with the limit when its first worker comes */
        return THOLE_OK;
    return status == THOLE_OK ? limit_settle(connection, &names, &state, reterr) : status;
}

/* The lease of a new consumer: as before, as a worker wants it, or 30 s. */
static thole_status new_lease(struct connection *connection, const struct work_names *names,
                              uint64_t *lease_ms, thole_error *reterr)
{
    uint64_t kept_ms = 0;
    THOLE_TRY(setting_read(connection, names, setting_lease, &kept_ms, reterr));
    if (kept_ms >= LEASE_MS_LEAST)
        *lease_ms = kept_ms;
    else if (*lease_ms == 0)
        *lease_ms = LEASE_MS_DEFAULT;
    return THOLE_OK;
}

thole_status topology_check_queue(struct connection *connection, const char *ns, thole_slice queue,
                                  uint64_t lease_ms, uint64_t *ret_lease_ms, bool *ret_fits,
                                  thole_error *reterr)
{
    struct work_names names;
    struct queue_state state;
    uint64_t limit = 0;
    bool ahead = false;
    *ret_fits = false;
    *ret_lease_ms = 0;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    THOLE_TRY(topology_queue_check_lease(lease_ms, reterr));
    thole_status const status = verify_queue(connection, &names, lease_ms, &state, reterr);
    if (status == THOLE_NOT_FOUND)
        return THOLE_OK;
    THOLE_TRY(status);
    *ret_lease_ms = state.lease_ms;
    THOLE_TRY(is_ahead(connection, &names, state.delivered, &ahead, reterr));
    THOLE_TRY(limit_read(connection, &names, &limit, reterr));
    *ret_fits = !ahead && limit_holds(&state, limit);
    return THOLE_OK;
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
    THOLE_TRY(topology_queue_check_lease(lease_ms, reterr));
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
    uint64_t made_ms = lease_ms;
    if (!ahead) /* else as it is */
        THOLE_TRY(new_lease(connection, &names, &made_ms, reterr));
    THOLE_TRY(limit_read(connection, &names, &limit, reterr));
    THOLE_TRY(make_queue(connection, &names, "create", made_ms, limit, reterr));
    if (ret_anew != NULL)
        *ret_anew = true;
    THOLE_TRY(verify_queue(connection, &names, lease_ms, &state, reterr));
    *ret_lease_ms = state.lease_ms;
    return limit_settle(connection, &names, &state, reterr);
}

thole_status topology_remove_queue(struct connection *connection, const char *ns, thole_slice queue,
                                   thole_error *reterr)
{
    struct work_names names;
    THOLE_TRY(work_names_make(ns, queue, &names, reterr));
    return remove_queue(connection, &names, reterr);
}
