#include "queue_wish.h"
#include "api.h"
#include "jscan.h"
#include "reader.h"
#include "topology.h"
#include <stdio.h>
#include <string.h>

enum {
    HEARTBEATS_MS = 5000, /* an engine has stored one by then */
    AGAIN_MS = 250,
    TOKEN_QUEUE = 3,
    TOKEN_SETTINGS = 4,
    ANSWER_BYTES_MAX = 4096,
    STREAM_BYTES = THOLE_NAME_BYTES_MAX + 24
};

void queue_wish_subject(const char *ns, const char *queue, char ret[QUEUE_WISH_SUBJECT_BYTES])
{
    (void)snprintf(ret, QUEUE_WISH_SUBJECT_BYTES, "thole.%s.queues.%s", ns, queue[0] == '\0' ? "*" : queue);
}

void queue_settings_subject(const char *ns, const char *queue, char ret[QUEUE_WISH_SUBJECT_BYTES])
{
    (void)snprintf(ret, QUEUE_WISH_SUBJECT_BYTES, "thole.%s.queues.%s.settings", ns,
                   queue[0] == '\0' ? "*" : queue);
}

static const char *const wish_members[] = {
    [QUEUE_WISH_CONSUMER] = "lease_ms", [QUEUE_WISH_LEASE] = "lease_ms", [QUEUE_WISH_LIMIT] = "limit"};

/* ---- asking the engines ---- */

/* Of numbers that another version may have more of. */
static thole_status known_status(uint64_t number)
{
    return number == THOLE_INVALID || number == THOLE_LIMIT || number == THOLE_DENIED ? (thole_status)number
                                                                                      : THOLE_UNAVAILABLE;
}

static thole_status judge_answer(thole_slice answer, thole_slice queue, thole_error *reterr)
{
    thole_slice value;
    uint64_t status = 0;
    struct buf text;
    if (!json_find(answer, "status", &value) || !json_uint(value, &status))
        return thole_fail(reterr, THOLE_CORRUPT, "queue %.*s: an engine's answer has no status",
                          THOLE_FMT(queue));
    if (status == THOLE_OK)
        return THOLE_OK;
    buf_init(&text, ANSWER_BYTES_MAX);
    if (!json_find(answer, "text", &value) || !json_text(value, &text))
        buf_clear(&text);
    (void)thole_fail(reterr, known_status(status), "queue %.*s: an engine cannot make its consumer: %s",
                     THOLE_FMT(queue), buf_cstr(&text));
    buf_release(&text);
    return known_status(status);
}

/* *@p ret_answered: an engine has said what the status is. */
static thole_status queue_wish_ask_engines(struct connection *connection, const char *ns,
                                           const struct queue_wish *wish, bool *ret_answered,
                                           thole_error *reterr)
{
    char subject[QUEUE_WISH_SUBJECT_BYTES], name[THOLE_NAME_BYTES_MAX + 1];
    struct api_body body;
    struct buf answer;
    (void)snprintf(name, sizeof name, "%.*s", THOLE_FMT(wish->queue));
    if (wish->kind == QUEUE_WISH_CONSUMER)
        queue_wish_subject(ns, name, subject);
    else
        queue_settings_subject(ns, name, subject);
    api_body_begin(&body);
    json_member_number(&body.json, wish_members[wish->kind], wish->number);
    buf_init(&answer, ANSWER_BYTES_MAX);
    thole_status status = connection_request(connection, subject, api_body_end(&body), &answer, reterr);
    *ret_answered = status == THOLE_OK;
    if (status == THOLE_OK)
        status = judge_answer(buf_bytes(&answer), wish->queue, reterr);
    buf_release(&answer);
    return status;
}

/* The last heartbeat; 0: there is none, or it cannot be seen. */
static uint64_t last_heartbeat(struct connection *connection, const char *ns)
{
    char stream[STREAM_BYTES];
    struct stream_bounds bounds = {.messages = 0};
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_NODES", ns);
    return stream_bounds(connection, stream, &bounds, NULL) == THOLE_OK && bounds.messages > 0 ? bounds.last
                                                                                               : 0;
}

/* Whether heartbeats come from engines that do not answer: one of this version answers before its first
 * heartbeat. Heartbeats already stored may be from engines that have gone. */
static bool older_engines_live(struct connection *connection, const char *ns, uint64_t before)
{
    return before != 0 && last_heartbeat(connection, ns) > before;
}

/* As long as an engine needs to store a heartbeat; one may start meanwhile. True: one has done it. */
static bool ask_for_a_while(struct connection *connection, const char *ns, thole_slice queue,
                            uint64_t lease_ms)
{
    struct queue_wish const wish = {QUEUE_WISH_CONSUMER, queue, lease_ms};
    bool answered = false;
    thole_error ignored;
    for (unsigned waited_ms = 0; waited_ms < HEARTBEATS_MS && !answered; waited_ms += AGAIN_MS) {
        connection_pause(connection, AGAIN_MS);
        if (queue_wish_ask_engines(connection, ns, &wish, &answered, &ignored) == THOLE_OK)
            return true;
    }
    return false;
}

/* @p error: why no engine has done it. */
static thole_status make_without_engines(struct connection *connection, const char *ns, thole_slice queue,
                                         uint64_t *lease_ms, const thole_error *error, thole_error *reterr)
{
    uint64_t const wanted_ms = *lease_ms, before = last_heartbeat(connection, ns);
    if (before != 0 && ask_for_a_while(connection, ns, queue, wanted_ms))
        return THOLE_OK;
    if (older_engines_live(connection, ns, before) &&
        topology_ensure_queue(connection, ns, queue, wanted_ms, lease_ms, NULL, NULL) == THOLE_OK)
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_UNAVAILABLE,
        "queue %.*s has no consumer that fits, and engines make it, of which none has answered: is one "
        "running in namespace %s, of this version? (%s)",
        THOLE_FMT(queue), ns, error->text);
}

thole_status queue_wish(struct connection *connection, const char *ns, thole_slice queue, uint64_t lease_ms,
                        uint64_t *ret_lease_ms, bool *ret_asked, thole_error *reterr)
{
    struct queue_wish const wish = {QUEUE_WISH_CONSUMER, queue, lease_ms};
    bool fits = false, answered = false;
    thole_error error = {.status = THOLE_OK};
    if (ret_asked != NULL)
        *ret_asked = false;
    THOLE_TRY(topology_check_queue(connection, ns, queue, lease_ms, ret_lease_ms, &fits, reterr));
    if (fits)
        return THOLE_OK;
    thole_status const status = queue_wish_ask_engines(connection, ns, &wish, &answered, &error);
    if (answered && status != THOLE_OK)
        return thole_fail(reterr, status, "%s", error.text);
    if (!answered) {
        *ret_lease_ms = lease_ms;
        THOLE_TRY(make_without_engines(connection, ns, queue, ret_lease_ms, &error, reterr));
    }
    if (ret_asked != NULL)
        *ret_asked = true;
    THOLE_TRY(topology_check_queue(connection, ns, queue, lease_ms, ret_lease_ms, &fits, reterr));
    return *ret_lease_ms != 0 ? THOLE_OK
                              : thole_fail(reterr, THOLE_UNAVAILABLE,
                                           "queue %.*s: its consumer is not there yet", THOLE_FMT(queue));
}

thole_status queue_wish_setting(struct connection *connection, const char *ns, const struct queue_wish *wish,
                                thole_error *reterr)
{
    bool answered = false;
    thole_error error = {.status = THOLE_OK};
    thole_status const status = queue_wish_ask_engines(connection, ns, wish, &answered, &error);
    if (status == THOLE_OK)
        return THOLE_OK;
    if (answered || status != THOLE_UNAVAILABLE)
        return thole_fail(reterr, status, "%s", error.text);
    return thole_fail(
        reterr, THOLE_UNAVAILABLE,
        "queue %.*s: engines change what is set for it, and none has answered: is one running in "
        "namespace %s, of this version? (%s)",
        THOLE_FMT(wish->queue), ns, error.text);
}

/* ---- engines ---- */

static thole_status queue_wish_number(const struct delivery *delivery, struct queue_wish *wish,
                                      thole_error *reterr)
{
    thole_slice value;
    bool const settings = subject_nth(delivery->subject, TOKEN_SETTINGS).len > 0;
    wish->kind = !settings                                                           ? QUEUE_WISH_CONSUMER
                 : json_find(delivery->body, wish_members[QUEUE_WISH_LIMIT], &value) ? QUEUE_WISH_LIMIT
                                                                                     : QUEUE_WISH_LEASE;
    const char *const member = wish_members[wish->kind];
    bool const there = json_find(delivery->body, member, &value);
    if (there && !json_uint(value, &wish->number))
        return thole_fail(reterr, THOLE_INVALID, "%s is not a number", member);
    if (!there && settings)
        return thole_fail(reterr, THOLE_INVALID, "it has neither limit nor lease_ms");
    return THOLE_OK;
}

thole_status queue_wish_read(const struct delivery *delivery, struct queue_wish *ret, thole_error *reterr)
{
    *ret = (struct queue_wish){.queue = subject_nth(delivery->subject, TOKEN_QUEUE)};
    THOLE_TRY(name_check(ret->queue, "queue", reterr));
    if (!subject_is_reply(delivery->reply))
        return thole_fail(reterr, THOLE_INVALID, "it has no reply subject that is an inbox");
    return queue_wish_number(delivery, ret, reterr);
}

thole_status queue_wish_fulfil(struct connection *connection, const char *ns, const struct queue_wish *wish,
                               uint64_t *ret_lease_ms, bool *ret_made, thole_error *reterr)
{
    *ret_made = false;
    *ret_lease_ms = wish->kind == QUEUE_WISH_LEASE ? wish->number : 0;
    if (wish->kind == QUEUE_WISH_LIMIT)
        return topology_limit_queue(connection, ns, wish->queue, wish->number, reterr);
    if (wish->kind == QUEUE_WISH_LEASE)
        return topology_lease_queue(connection, ns, wish->queue, wish->number, reterr);
    THOLE_TRY(
        topology_ensure_queue(connection, ns, wish->queue, wish->number, ret_lease_ms, ret_made, reterr));
    return *ret_made ? topology_keep_lease(connection, ns, wish->queue, *ret_lease_ms, reterr) : THOLE_OK;
}

thole_status queue_wish_answer(struct connection *connection, const char *reply, thole_status status,
                               uint64_t lease_ms, const thole_error *error, thole_error *reterr)
{
    struct buf bytes;
    struct json json;
    buf_init(&bytes, ANSWER_BYTES_MAX);
    json_to_buf(&json, &bytes);
    json_object(&json);
    json_member_text(&json, "type", "thole.queue_wish.v1");
    json_member_number(&json, "status", (uint64_t)status);
    if (status == THOLE_OK)
        json_member_number(&json, "lease_ms", lease_ms);
    else
        json_member_text(&json, "text", error->text);
    json_end(&json);
    status = buf_status(&bytes);
    if (status == THOLE_OK)
        status = connection_publish(connection, reply, NULL, 0, buf_bytes(&bytes), reterr);
    buf_release(&bytes);
    return status;
}
