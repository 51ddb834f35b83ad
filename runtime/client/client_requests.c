/* Durable requests to an instance: cancel, terminate, pause, resume, signal; and completions from outside. */
#include "client_holds.h"
#include "client_notes.h"
#include "client_standing.h"
#include "confirm.h"
#include "nonce.h"
#include "pending_start.h"
#include "publish_once.h"
#include "remedy.h"
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

/* The request that an instance which has ended does not get, in words. */
static const char *not_done(enum message_kind kind)
{
    switch (kind) {
    case MESSAGE_CANCEL: return "nothing was cancelled";
    case MESSAGE_TERMINATE: return "nothing was terminated";
    case MESSAGE_EVENT: return "the event was not raised";
    case MESSAGE_RELEASE: return "no timer was fired";
    case MESSAGE_PRUNE: return "nothing was pruned: thole delete ID removes all of it";
    default: return "nothing was changed";
    }
}

static thole_status client_requests_has_ended(const struct watch *watch, const struct message *message,
                                              const struct turn *turn, thole_error *reterr)
{
    char time[TIME_TEXT_BYTES], nothing[THOLE_ID_BYTES_MAX + 80];
    assert(turn_end(turn) != NULL);
    text_time(turn->time_ms, time);
    remedy_fill(not_done(message->kind), watch->instance, nothing, sizeof nothing);
    return thole_fail(reterr, THOLE_CONFLICT, "instance \"%.*s\" ended as %s at %s; %s",
                      THOLE_FMT(watch->instance),
                      thole_instance_status_name(end_status(turn_end(turn)->kind)), time, nothing);
}

enum must {
    MUST_EXIST,
    MAY_REPEAT, /* must exist, and may have ended of this very request */
    MAY_EXIST,  /* may repeat, too */
    SAY_EXISTS, /* likewise, and the caller asks whether it exists */
    NOT_LOOKED_AT
};

/* THOLE_CONFLICT: it has ended, or has taken something else under this request id. A record that may be void
 * is ignored: the owner decides. A repeated request is no conflict: the instance may have ended of it. Of an
 * instance that is open the last turn alone is looked at: its whole history would cost too much. */
static thole_status client_requests_check_open(struct watch *watch, const struct message *message,
                                               enum must must, const struct record *record, uint64_t sequence,
                                               struct standing *ret_standing, thole_error *reterr)
{
    struct log_rule owner;
    enum repetition repeated = REPETITION_NONE;
    bool const open = turn_end(&record->turn) == NULL;
    if (open)
        standing_note(ret_standing, message->instance, &record->turn);
    if (open && repetition_in(&record->turn, message) == REPETITION_OTHER)
        return repetition_refuse(message, reterr);
    if (open && !standing_is_against(ret_standing, message->kind))
        return THOLE_OK;
    THOLE_TRY(owner_read(watch->client, watch->instance, &owner, reterr));
    if (log_rule_surely_void(&owner, record, sequence))
        ret_standing->known = false;
    if (open || log_rule_surely_void(&owner, record, sequence))
        return THOLE_OK;
    if (must != MUST_EXIST)
        THOLE_TRY(history_repetition(watch->client, message, &repeated, reterr));
    if (repeated == REPETITION_OTHER)
        return repetition_refuse(message, reterr);
    return repeated == REPETITION_SAME ? THOLE_OK
                                       : client_requests_has_ended(watch, message, &record->turn, reterr);
}

static thole_status look_at_history(struct watch *watch, const struct message *message, enum must must,
                                    uint64_t until_ms, bool *ret_exists, struct standing *ret_standing,
                                    thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    *ret_standing = (struct standing){.known = false};
    *ret_exists = sequence > 0; /* an unreadable record exists, too */
    if (status == THOLE_OK && *ret_exists)
        status = client_requests_check_open(watch, message, must, &record, sequence, ret_standing, reterr);
    else if (*ret_exists)
        status = THOLE_OK;
    arena_release(&arena);
    return status;
}

/* A request that would change nothing is not sent, unless a waiting request may change that. Waiting requests
 * are looked up first: they may be taken meanwhile. */
static thole_status check_standing(struct watch *watch, const struct message *message, enum must must,
                                   uint64_t until_ms, struct standing *standing, thole_error *reterr)
{
    bool waits = false, exists = false;
    if (!standing_is_against(standing, message->kind))
        return THOLE_OK;
    THOLE_TRY(pending_request_find(watch->client, watch->instance, &waits, reterr));
    if (waits)
        return THOLE_OK;
    THOLE_TRY(look_at_history(watch, message, must, until_ms, &exists, standing, reterr));
    return standing_is_against(standing, message->kind)
               ? standing_conflict(standing, message->kind, watch->instance, reterr)
               : THOLE_OK;
}

/* Looks up the state of the instance. It may end, or begin, before the message is taken. An instance whose
 * start waits exists: the message is taken after the start. */
static thole_status client_requests_look(struct watch *watch, const struct message *message, enum must must,
                                         uint64_t until_ms, bool *ret_exists, struct standing *ret_standing,
                                         thole_error *reterr)
{
    enum absence absence = ABSENCE_START;
    THOLE_TRY(look_at_history(watch, message, must, until_ms, ret_exists, ret_standing, reterr));
    if (*ret_exists)
        return check_standing(watch, message, must, until_ms, ret_standing, reterr);
    if (must == MAY_EXIST)
        return THOLE_OK;
    thole_status const status = absence_explain(watch->client, watch->instance, &absence, reterr);
    if (status == THOLE_NOT_FOUND && must == SAY_EXISTS)
        return THOLE_OK;
    THOLE_TRY(status);
    *ret_exists = true;
    return absence == ABSENCE_OVER
               ? look_at_history(watch, message, must, until_ms, ret_exists, ret_standing, reterr)
               : THOLE_OK;
}

struct sending {
    enum must must;
    bool once;    /* the request id is the caller's */
    bool confirm; /* until the history has the event */
    bool exists;  /* result of the look */
    struct standing standing;
};

static thole_status client_requests_store(struct watch *watch, const struct letter *letter,
                                          const struct message *message, const struct sending *sending,
                                          uint64_t until_ms, thole_error *reterr)
{
    return sending->once ? publish_once(watch, letter, message, until_ms, reterr)
                         : watch_publish(watch, letter, until_ms, reterr);
}

static thole_status store_and_confirm(struct watch *watch, const struct letter *letter,
                                      const struct message *message, const struct sending *sending,
                                      uint64_t until_ms, thole_error *reterr)
{
    struct confirming confirming;
    bool taken;
    THOLE_TRY(confirm_begin(watch, message, sending->once, &confirming, &taken, reterr));
    if (taken)
        return THOLE_OK;
    THOLE_TRY(client_requests_store(watch, letter, message, sending, until_ms, reterr));
    return confirm_await(watch, message, &confirming, until_ms, reterr);
}

/* Durable when it returns THOLE_OK. */
static thole_status client_requests_send_message(thole_client *client, const struct message *message,
                                                 struct sending *sending, thole_error *reterr)
{
    struct watch watch;
    struct letter letter;
    assert(sending->must == NOT_LOOKED_AT || message->request_id.len > 0);
    uint64_t const until = client_now_ms() + client->timeout_ms;
    sending->exists = true;
    buf_init(&letter.body, MESSAGE_BYTES_MAX);
    thole_status status = client_encode(client, message, &letter, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, sending->confirm ? WATCH_NOTICES : WATCH_QUIET, message->instance,
                            message->request_id, &watch, reterr);
    if (status == THOLE_OK) {
        if (sending->must != NOT_LOOKED_AT)
            status = client_requests_look(&watch, message, sending->must, until, &sending->exists,
                                          &sending->standing, reterr);
        if (status == THOLE_OK)
            status = (sending->confirm ? store_and_confirm : client_requests_store)(&watch, &letter, message,
                                                                                    sending, until, reterr);
        watch_close(&watch);
    }
    buf_release(&letter.body);
    return status;
}

/* ---- requests with a reason ---- */

/* With an id of its own if it has none. @p ret_standing may be NULL. */
static thole_status client_requests_request_of(thole_client *client, struct message *message,
                                               struct standing *ret_standing, thole_error *reterr)
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
    struct sending sending = {.must = own ? MAY_REPEAT : MUST_EXIST, .once = own};
    thole_status const status = client_requests_send_message(client, message, &sending, reterr);
    if (ret_standing != NULL)
        *ret_standing = sending.standing;
    return status;
}

static thole_status client_requests_request(thole_client *client, enum message_kind kind,
                                            thole_slice instance, thole_slice reason, thole_error *reterr)
{
    struct message message = {.kind = kind, .instance = instance, .data = reason};
    return client_requests_request_of(client, &message, NULL, reterr);
}

static thole_status request_end(thole_client *client, enum message_kind kind, thole_slice instance,
                                const thole_end_options *options, struct standing *ret_standing,
                                thole_error *reterr)
{
    thole_end_options const none = {.size = sizeof none};
    if (options == NULL)
        options = &none;
    if (options->size < sizeof none)
        return thole_fail(reterr, THOLE_INVALID, "thole_end_options.size is not set");
    struct message message = {
        .kind = kind, .instance = instance, .data = options->reason, .request_id = options->request_id};
    THOLE_TRY(client_sender(&options->sender, &message.source.actor, reterr));
    return client_requests_request_of(client, &message, ret_standing, reterr);
}

thole_status thole_client_cancel(thole_client *client, thole_slice instance, thole_slice reason,
                                 thole_error *reterr)
{
    return client_requests_request(client, MESSAGE_CANCEL, instance, reason, reterr);
}

thole_status thole_client_cancel_with(thole_client *client, thole_slice instance,
                                      const thole_end_options *options, thole_error *reterr)
{
    return request_end(client, MESSAGE_CANCEL, instance, options, NULL, reterr);
}

thole_status client_cancel_noted(thole_client *client, thole_slice instance, const thole_end_options *options,
                                 struct standing *ret_standing, thole_error *reterr)
{
    *ret_standing = (struct standing){.known = false};
    return request_end(client, MESSAGE_CANCEL, instance, options, ret_standing, reterr);
}

thole_status thole_client_terminate(thole_client *client, thole_slice instance, thole_slice reason,
                                    thole_error *reterr)
{
    return client_requests_request(client, MESSAGE_TERMINATE, instance, reason, reterr);
}

thole_status thole_client_terminate_with(thole_client *client, thole_slice instance,
                                         const thole_end_options *options, thole_error *reterr)
{
    return request_end(client, MESSAGE_TERMINATE, instance, options, NULL, reterr);
}

thole_status thole_client_pause(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr)
{
    return client_requests_request(client, MESSAGE_PAUSE, instance, reason, reterr);
}

thole_status thole_client_resume(thole_client *client, thole_slice instance, thole_slice reason,
                                 thole_error *reterr)
{
    return client_requests_request(client, MESSAGE_RESUME, instance, reason, reterr);
}

static thole_status prune_is_allowed(thole_client *client, thole_slice instance, thole_error *reterr)
{
    THOLE_TRY(client_check_id(instance, reterr));
    thole_error held = {.status = THOLE_OK}; /* unless known here, the engine decides */
    return client_check_hold(client, instance, &held) == THOLE_CONFLICT
               ? thole_fail(reterr, THOLE_CONFLICT, "%s", held.text)
               : THOLE_OK;
}

thole_status client_prune_check(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr)
{
    struct message const message = {.kind = MESSAGE_PRUNE, .instance = instance};
    struct standing standing;
    struct watch watch;
    bool exists;
    THOLE_TRY(prune_is_allowed(client, instance, reterr));
    THOLE_TRY(client_check_reason(reason, reterr));
    THOLE_TRY(watch_open(client, WATCH_QUIET, instance, (thole_slice){NULL, 0}, &watch, reterr));
    thole_status const status = client_requests_look(
        &watch, &message, MUST_EXIST, client_now_ms() + client->timeout_ms, &exists, &standing, reterr);
    watch_close(&watch);
    return status;
}

thole_status thole_client_prune(thole_client *client, thole_slice instance, uint64_t before,
                                thole_slice reason, thole_error *reterr)
{
    if (before == 0)
        return thole_fail(reterr, THOLE_INVALID, "executions are counted from 1: there are none before 0");
    THOLE_TRY(prune_is_allowed(client, instance, reterr));
    struct message message = {
        .kind = MESSAGE_PRUNE, .instance = instance, .execution = before, .data = reason};
    return client_requests_request_of(client, &message, NULL, reterr);
}

thole_status thole_client_retry(thole_client *client, thole_slice instance, thole_slice reason,
                                thole_error *reterr)
{
    return client_requests_request(client, MESSAGE_RETRY, instance, reason, reterr);
}

/* ---- events ---- */

thole_status client_signal_noted(thole_client *client, thole_slice instance, thole_slice name,
                                 thole_slice data, const thole_signal_options *options, bool *ret_kept,
                                 struct standing *ret_standing, thole_error *reterr)
{
    thole_signal_options const none = {.size = sizeof none};
    struct request_id id;
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
    struct sending sending = {.must = ret_kept == NULL ? MAY_EXIST : SAY_EXISTS,
                              .once = options->request_id.len > 0,
                              .confirm = options->confirm};
    THOLE_TRY(client_requests_send_message(client, &message, &sending, reterr));
    *ret_standing = sending.standing;
    if (ret_kept != NULL)
        *ret_kept = !sending.exists;
    return THOLE_OK;
}

thole_status thole_client_signal_with(thole_client *client, thole_slice instance, thole_slice name,
                                      thole_slice data, const thole_signal_options *options, bool *ret_kept,
                                      thole_error *reterr)
{
    struct standing standing;
    return client_signal_noted(client, instance, name, data, options, ret_kept, &standing, reterr);
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
        !token_number(token, TRY, RANGE_INT4, &number) || number == 0 || subject_nth(token, PARTS).len > 0 ||
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
        status =
            client_requests_send_message(client, message, &(struct sending){.must = NOT_LOOKED_AT}, reterr);
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

thole_status thole_client_fire_timer(thole_client *client, thole_slice instance, uint64_t execution,
                                     uint64_t timer, thole_error *reterr)
{
    struct request_id id;
    struct message message = {
        .kind = MESSAGE_RELEASE, .instance = instance, .execution = execution, .task = timer, .timer = true};
    THOLE_TRY(client_check_id(instance, reterr));
    if (execution == 0 || timer == 0)
        return thole_fail(reterr, THOLE_INVALID, "executions and ids of timers begin with 1");
    THOLE_TRY(request_id_make(&id, reterr)); /* for the watch: the message has none, and is harmless twice */
    message.request_id = thole_slice_from(id.text);
    return client_requests_send_message(client, &message, &(struct sending){.must = MUST_EXIST}, reterr);
}

/* ---- activities in quarantine ---- */

static thole_status client_requests_decide(thole_client *client, struct message message, thole_error *reterr)
{
    THOLE_TRY(client_check_id(message.instance, reterr));
    if (message.execution == 0 || message.task == 0)
        return thole_fail(reterr, THOLE_INVALID, "executions and activity ids begin with 1");
    message.kind = MESSAGE_RELEASE;
    return client_requests_send_message(client, &message, &(struct sending){.must = NOT_LOOKED_AT}, reterr);
}

thole_status thole_client_poisoned_retry(thole_client *client, thole_slice instance, uint64_t execution,
                                         uint64_t activity_id, uint32_t try_number, thole_error *reterr)
{
    struct message const message = {
        .instance = instance, .execution = execution, .task = activity_id, .try_number = try_number};
    return client_requests_decide(client, message, reterr);
}

thole_status thole_client_poisoned_fail(thole_client *client, thole_slice instance, uint64_t execution,
                                        uint64_t activity_id, uint32_t try_number, thole_error *reterr)
{
    struct message const message = {.instance = instance,
                                    .execution = execution,
                                    .task = activity_id,
                                    .try_number = try_number,
                                    .fail = true};
    return client_requests_decide(client, message, reterr);
}
