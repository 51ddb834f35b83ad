/* Durable requests to an instance: cancel, terminate, pause, resume, signal; and completions from outside. */
#include "client_holds.h"
#include "nonce.h"
#include "text.h"
#include "watch.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- arguments ---- */

static thole_status check_type(thole_slice type, thole_error *reterr)
{
    if (type.len > ERROR_TYPE_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "the error type has %zu bytes, at most %d are allowed",
                          type.len, ERROR_TYPE_BYTES_MAX);
    for (size_t i = 0; i < type.len; i++) {
        uint8_t const c = type.ptr[i];
        if (c == '.' || c == '_' || c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
            (c >= 'A' && c <= 'Z'))
            continue;
        return thole_fail(reterr, THOLE_INVALID, "the error type has byte 0x%02x, allowed is [A-Za-z0-9_.-]",
                          c);
    }
    return THOLE_OK;
}

/* ---- sending ---- */

/* What has not been done to an instance that has ended. */
static const char *not_done(enum message_kind kind)
{
    switch (kind) {
    case MESSAGE_CANCEL: return "nothing was cancelled";
    case MESSAGE_TERMINATE: return "nothing was terminated";
    case MESSAGE_EVENT: return "the event was not raised";
    case MESSAGE_PRUNE: return "nothing was pruned: thole delete removes all of it";
    default: return "nothing was changed";
    }
}

static thole_status has_ended(const struct watch *watch, const struct message *message,
                              const struct turn *turn, thole_error *reterr)
{
    char time[TIME_TEXT_BYTES];
    assert(turn_end(turn) != NULL);
    text_time(turn->time_ms, time);
    return thole_fail(
        reterr, THOLE_CONFLICT, "instance \"%.*s\" ended as %s at %s; %s", THOLE_FMT(watch->instance),
        thole_instance_status_name(end_status(turn_end(turn)->kind)), time, not_done(message->kind));
}

enum must {
    MUST_EXIST,
    MAY_REPEAT, /* must exist, and may have ended of this very request */
    MAY_EXIST,  /* may repeat, too */
    NOT_LOOKED_AT
};

/* THOLE_CONFLICT: it has ended. A record that may be void is ignored: the owner decides. A repeated request
 * is no conflict: the instance may have ended of it. */
static thole_status check_open(struct watch *watch, const struct message *message, enum must must,
                               const struct record *record, uint64_t sequence, thole_error *reterr)
{
    struct log_rule owner;
    bool repeated = false;
    if (turn_end(&record->turn) == NULL)
        return THOLE_OK;
    THOLE_TRY(owner_read(watch->client, watch->instance, &owner, reterr));
    if (log_rule_surely_void(&owner, record, sequence))
        return THOLE_OK;
    if (must != MUST_EXIST)
        THOLE_TRY(
            history_has_request(watch->client, watch->instance, message->request_id, &repeated, reterr));
    return repeated ? THOLE_OK : has_ended(watch, message, &record->turn, reterr);
}

/* Looks up the state of the instance. It may end, or begin, before the message is taken. */
static thole_status look(struct watch *watch, const struct message *message, enum must must,
                         uint64_t until_ms, bool *ret_exists, thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    *ret_exists = sequence > 0; /* an unreadable record exists, too */
    if (status == THOLE_OK && *ret_exists)
        status = check_open(watch, message, must, &record, sequence, reterr);
    else if (*ret_exists)
        status = THOLE_OK;
    else if (status == THOLE_OK && must != MAY_EXIST)
        status = thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                            THOLE_FMT(watch->instance), watch->client->topology.ns);
    arena_release(&arena);
    return status;
}

/* Durable when it returns THOLE_OK. @p ret_exists: what the look has seen; may be NULL. */
static thole_status send_message(thole_client *client, const struct message *message, enum must must,
                                 bool *ret_exists, thole_error *reterr)
{
    struct watch watch;
    struct letter letter;
    bool exists = true;
    assert(must == NOT_LOOKED_AT || message->request_id.len > 0);
    uint64_t const until = client_now_ms() + client->timeout_ms;
    buf_init(&letter.body, MESSAGE_BYTES_MAX);
    thole_status status = client_encode(client, message, &letter, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, WATCH_QUIET, message->instance, message->request_id, &watch, reterr);
    if (status == THOLE_OK) {
        if (must != NOT_LOOKED_AT)
            status = look(&watch, message, must, until, &exists, reterr);
        if (status == THOLE_OK)
            status = watch_publish(&watch, &letter, until, reterr);
        watch_close(&watch);
    }
    buf_release(&letter.body);
    if (status == THOLE_OK && ret_exists != NULL)
        *ret_exists = exists;
    return status;
}

/* ---- requests with a reason ---- */

/* With an id of its own if it has none. */
static thole_status request_of(thole_client *client, struct message *message, thole_error *reterr)
{
    struct request_id id;
    THOLE_TRY(client_check_id(message->instance, reterr));
    THOLE_TRY(client_check_reason(message->data, reterr));
    THOLE_TRY(client_check_request_id(message->request_id, reterr));
    bool const own = message->request_id.len > 0;
    if (!own) {
        THOLE_TRY(request_id_make(&id, reterr));
        message->request_id = thole_slice_from(id.text);
    }
    return send_message(client, message, own ? MAY_REPEAT : MUST_EXIST, NULL, reterr);
}

static thole_status request(thole_client *client, enum message_kind kind, thole_slice instance,
                            thole_slice reason, thole_error *reterr)
{
    struct message message = {.kind = kind, .instance = instance, .data = reason};
    return request_of(client, &message, reterr);
}

static thole_status request_end(thole_client *client, enum message_kind kind, thole_slice instance,
                                const thole_end_options *options, thole_error *reterr)
{
    thole_end_options const none = {.size = sizeof none};
    if (options == NULL)
        options = &none;
    if (options->size < sizeof none)
        return thole_fail(reterr, THOLE_INVALID, "thole_end_options.size is not set");
    struct message message = {
        .kind = kind, .instance = instance, .data = options->reason, .request_id = options->request_id};
    THOLE_TRY(client_sender(&options->sender, &message.source.actor, reterr));
    return request_of(client, &message, reterr);
}

thole_status thole_client_cancel(thole_client *client, thole_slice instance, thole_slice reason,
                                 thole_error *reterr)
{
    return request(client, MESSAGE_CANCEL, instance, reason, reterr);
}

thole_status thole_client_cancel_with(thole_client *client, thole_slice instance,
                                      const thole_end_options *options, thole_error *reterr)
{
    return request_end(client, MESSAGE_CANCEL, instance, options, reterr);
}

thole_status thole_client_terminate(thole_client *client, thole_slice instance, thole_slice reason,
                                    thole_error *reterr)
{
    return request(client, MESSAGE_TERMINATE, instance, reason, reterr);
}

thole_status thole_client_terminate_with(thole_client *client, thole_slice instance,
                                         const thole_end_options *options, thole_error *reterr)
{
    return request_end(client, MESSAGE_TERMINATE, instance, options, reterr);
}

thole_status thole_client_pause(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr)
{
    return request(client, MESSAGE_PAUSE, instance, reason, reterr);
}

thole_status thole_client_resume(thole_client *client, thole_slice instance, thole_slice reason,
                                 thole_error *reterr)
{
    return request(client, MESSAGE_RESUME, instance, reason, reterr);
}

thole_status thole_client_prune(thole_client *client, thole_slice instance, uint64_t before,
                                thole_slice reason, thole_error *reterr)
{
    if (before == 0)
        return thole_fail(reterr, THOLE_INVALID, "executions are counted from 1: there are none before 0");
    THOLE_TRY(client_check_id(instance, reterr));
    thole_error held = {.status = THOLE_OK}; /* what cannot be found out is the engine's to say */
    if (client_check_hold(client, instance, &held) == THOLE_CONFLICT)
        return thole_fail(reterr, THOLE_CONFLICT, "%s", held.text);
    struct message message = {
        .kind = MESSAGE_PRUNE, .instance = instance, .execution = before, .data = reason};
    return request_of(client, &message, reterr);
}

thole_status thole_client_retry(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr)
{
    return request(client, MESSAGE_RETRY, instance, reason, reterr);
}

/* ---- events ---- */

thole_status thole_client_signal_with(thole_client *client, thole_slice instance, thole_slice name,
                                      thole_slice data, const thole_signal_options *options, bool *ret_kept,
                                      thole_error *reterr)
{
    thole_signal_options const none = {.size = sizeof none};
    struct request_id id;
    bool exists = false;
    if (options == NULL)
        options = &none;
    if (options->size < sizeof none)
        return thole_fail(reterr, THOLE_INVALID, "thole_signal_options.size is not set");
    struct message message = {.kind = MESSAGE_EVENT,
                              .instance = instance,
                              .event_name = name,
                              .event_data = data,
                              .request_id = options->request_id};
    THOLE_TRY(client_check_id(instance, reterr));
    THOLE_TRY(name_check(name, "event", reterr));
    THOLE_TRY(client_check_payload(client, "data", data.len, reterr));
    THOLE_TRY(client_check_request_id(message.request_id, reterr));
    THOLE_TRY(client_sender(&options->sender, &message.source.actor, reterr));
    if (message.request_id.len == 0) {
        THOLE_TRY(request_id_make(&id, reterr));
        message.request_id = thole_slice_from(id.text);
    }
    THOLE_TRY(send_message(client, &message, MAY_EXIST, &exists, reterr));
    if (ret_kept != NULL)
        *ret_kept = !exists;
    return THOLE_OK;
}

thole_status thole_client_signal(thole_client *client, thole_slice instance, thole_slice name,
                                 thole_slice data, thole_slice request_id, bool *ret_kept,
                                 thole_error *reterr)
{
    thole_signal_options const options = {.size = sizeof options, .request_id = request_id};
    return thole_client_signal_with(client, instance, name, data, &options, ret_kept, reterr);
}

/* ---- activities that are completed from outside ---- */

/* The @p index-th of the token's numbers: digits only, no zero in front. */
static bool token_number(thole_slice token, size_t index, uint64_t max, uint64_t *ret)
{
    thole_slice const digits = subject_nth(token, index);
    uint64_t value = 0;
    if (digits.len == 0 || (digits.len > 1 && digits.ptr[0] == '0'))
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        uint64_t const digit = (uint64_t)digits.ptr[i] - '0';
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9' || value > (max - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *ret = value;
    return true;
}

/* "<partition>.<execution>.<activity id>.<try>.<nonce>.<instance, percent-encoded>". The instance goes into
 * @p id. */
static thole_status token_parse(const struct thole_client *client, thole_slice token, struct buf *id,
                                struct message *ret, thole_error *reterr)
{
    enum { PARTITION, EXECUTION, ACTIVITY, TRY, NONCE, INSTANCE, PARTS };
    uint64_t p, number;
    if (!token_number(token, PARTITION, PARTITIONS_MAX, &p) ||
        !token_number(token, EXECUTION, INT64_MAX, &ret->execution) || ret->execution == 0 ||
        !token_number(token, ACTIVITY, INT64_MAX, &ret->task) || ret->task == 0 ||
        !token_number(token, TRY, UINT32_MAX, &number) || number == 0 || subject_nth(token, PARTS).len > 0 ||
        !nonce_is_text(subject_nth(token, NONCE)) ||
        subject_token_decode(subject_nth(token, INSTANCE), id, NULL) != THOLE_OK)
        return thole_fail(reterr, THOLE_INVALID,
                          "this is not a token that thole_activity_later() has given out");
    ret->try_number = (uint32_t)number;
    ret->nonce = subject_nth(token, NONCE);
    ret->instance = buf_bytes(id);
    if (subject_partition(ret->instance, client->topology.partitions) != p)
        return thole_fail(reterr, THOLE_INVALID,
                          "this is no token of namespace %s: it was altered or cut, or another namespace has "
                          "given it out",
                          client->topology.ns);
    return THOLE_OK;
}

static thole_status end_activity(thole_client *client, thole_slice token, struct message *message,
                                 thole_error *reterr)
{
    struct buf id;
    buf_init(&id, THOLE_ID_BYTES_MAX);
    message->kind = MESSAGE_ACTIVITY_RESULT;
    thole_status status = token_parse(client, token, &id, message, reterr);
    if (status == THOLE_OK)
        status = send_message(client, message, NOT_LOOKED_AT, NULL, reterr);
    buf_release(&id);
    return status;
}

thole_status thole_client_complete(thole_client *client, thole_slice token, thole_slice output,
                                   thole_error *reterr)
{
    struct message message = {.status = THOLE_OK, .data = output};
    THOLE_TRY(client_check_payload(client, "output", output.len, reterr));
    return end_activity(client, token, &message, reterr);
}

thole_status thole_client_fail(thole_client *client, thole_slice token, thole_slice type, thole_slice message,
                               thole_error *reterr)
{
    struct message failed = {.status = THOLE_APP, .data = message, .error_type = type};
    THOLE_TRY(check_type(type, reterr));
    THOLE_TRY(client_check_payload(client, "message", message.len, reterr));
    return end_activity(client, token, &failed, reterr);
}

/* ---- activities in quarantine ---- */

static thole_status decide(thole_client *client, struct message message, thole_error *reterr)
{
    THOLE_TRY(client_check_id(message.instance, reterr));
    if (message.execution == 0 || message.task == 0)
        return thole_fail(reterr, THOLE_INVALID, "executions and activity ids begin with 1");
    message.kind = MESSAGE_RELEASE;
    return send_message(client, &message, NOT_LOOKED_AT, NULL, reterr);
}

thole_status thole_client_poisoned_retry(thole_client *client, thole_slice instance, uint64_t execution,
                                         uint64_t activity_id, uint32_t try_number, thole_error *reterr)
{
    struct message const message = {
        .instance = instance, .execution = execution, .task = activity_id, .try_number = try_number};
    return decide(client, message, reterr);
}

thole_status thole_client_poisoned_fail(thole_client *client, thole_slice instance, uint64_t execution,
                                        uint64_t activity_id, uint32_t try_number, thole_error *reterr)
{
    struct message const message = {.instance = instance,
                                    .execution = execution,
                                    .task = activity_id,
                                    .try_number = try_number,
                                    .fail = true};
    return decide(client, message, reterr);
}
