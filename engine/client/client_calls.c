/* start, run, wait, cancel. */
#include "message.h"
#include "watch.h"
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    LOOK_PAUSE_MS = 5000,      /* a waiter that hears nothing looks this often: notices may be lost */
    FIRST_LOOK_PAUSE_MS = 250, /* of run: nobody has taken the start for so long */
    MESSAGE_OVERHEAD = 4096,   /* of an inbox message around its payload */
};

static const uint64_t WAIT_MS_MAX = UINT64_C(100) * 365 * 24 * 3600 * 1000;

/* ---- arguments and messages ---- */

struct request_id {
    char text[REQUEST_ID_BYTES + 1];
};

static thole_status request_id_make(struct request_id *ret, thole_error *reterr)
{
    uint8_t bytes[REQUEST_ID_BYTES / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(ret->text + 2 * i, 3, "%02x", bytes[i]);
    return THOLE_OK;
}

static thole_status check_start(const struct thole_client *client, thole_slice instance,
                                thole_slice orchestration, thole_slice input, thole_error *reterr)
{
    size_t const room = connection_max_payload(client->connection);
    THOLE_TRY(id_check(instance, reterr));
    THOLE_TRY(name_check(orchestration, "orchestration", reterr));
    if (input.len > client->payload_max)
        return thole_fail(reterr, THOLE_LIMIT, "the input has %zu bytes, at most %zu are allowed", input.len,
                          client->payload_max);
    if (input.len + MESSAGE_OVERHEAD + HEADERS_BYTES_MAX > room)
        return thole_fail(reterr, THOLE_LIMIT,
                          "the input has %zu bytes; with its envelope that is more than the NATS server's "
                          "max_payload of %zu",
                          input.len, room);
    return THOLE_OK;
}

static thole_status encode(const struct message *message, struct buf *to, thole_error *reterr)
{
    thole_status const status = message_encode(message, to);
    return status == THOLE_OK
               ? THOLE_OK
               : thole_fail(reterr, status, "the message cannot be encoded: %s", thole_status_text(status));
}

/* ---- whose instance is it ---- */

static thole_status in_use(thole_slice instance, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_CONFLICT,
                      "instance \"%.*s\" exists already (running or ended); nothing was changed",
                      THOLE_FMT(instance));
}

/* THOLE_OK: the history begins with this watch's start, or there is none (*ret_sequence = 0). */
static thole_status check_own(struct watch *watch, uint64_t *ret_sequence, thole_error *reterr)
{
    struct arena arena;
    thole_slice request = {NULL, 0};
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status =
        history_request(watch->client, watch->instance, &arena, ret_sequence, &request, reterr);
    if (status == THOLE_OK && *ret_sequence > 0 && !thole_slice_equal(request, watch->request))
        status = in_use(watch->instance, reterr);
    arena_release(&arena);
    return status;
}

/* ---- start ---- */

static bool is_decided(const struct watch *watch)
{
    return watch->accepted || watch->rejected;
}

static bool is_accepted(const struct watch *watch)
{
    return watch->accepted;
}

static bool is_rejected(const struct watch *watch)
{
    return watch->rejected;
}

static bool holds_now(struct watch *watch, watch_predicate *predicate)
{
    return watch_sleep(watch, predicate, 0);
}

static thole_status check_unused(struct watch *watch, uint64_t until_ms, thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    if (sequence > 0) /* also when the record cannot be read: it is there */
        status = in_use(watch->instance, reterr);
    arena_release(&arena);
    return status;
}

/* Waits for the engine's word, and looks now and then, more and more rarely: a notice may be lost.
 * *ret_exists: the history was found meanwhile. */
static thole_status await_decision(struct watch *watch, uint64_t until_ms, bool *ret_exists,
                                   thole_error *reterr)
{
    uint64_t pause_ms = FIRST_LOOK_PAUSE_MS;
    struct record record;
    struct arena arena;
    uint64_t sequence = 0;
    thole_status status = THOLE_OK;
    arena_init(&arena, CLIENT_ARENA_MAX);
    for (; status == THOLE_OK && sequence == 0 && client_now_ms() < until_ms; pause_ms *= 2) {
        uint64_t const pause = client_now_ms() + pause_ms;
        if (watch_sleep(watch, is_decided, pause < until_ms ? pause : until_ms))
            break;
        status = watch_take_look(watch, client_now_ms() + watch->client->timeout_ms, &arena, &sequence,
                                 &record, reterr);
        arena_release(&arena);
    }
    *ret_exists = sequence > 0;
    return sequence > 0 ? THOLE_OK : status; /* a record that cannot be read is there all the same */
}

static thole_status start_watched(struct watch *watch, thole_slice body, uint64_t until_ms,
                                  bool *ret_accepted, thole_error *reterr)
{
    uint64_t sequence = 0;
    bool exists = false;
    THOLE_TRY(check_unused(watch, until_ms, reterr));
    THOLE_TRY(watch_publish(watch, "start", body, until_ms, reterr));
    THOLE_TRY(await_decision(watch, until_ms, &exists, reterr));
    *ret_accepted = holds_now(watch, is_accepted);
    if (*ret_accepted || (!exists && !holds_now(watch, is_rejected)))
        return THOLE_OK;
    THOLE_TRY(
        check_own(watch, &sequence, reterr)); /* a rejection may answer a repetition of an accepted start */
    *ret_accepted = sequence > 0;
    return THOLE_OK;
}

/* ---- the end ---- */

static thole_status outcome_fill(const struct turn *turn, thole_outcome *ret, thole_error *reterr)
{
    const struct event *end = turn_end(turn);
    uint8_t *output = malloc(end->data.len + 1);
    if (output == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "out of memory for a result of %zu bytes", end->data.len);
    if (end->data.len > 0)
        memcpy(output, end->data.ptr, end->data.len);
    output[end->data.len] = '\0'; /* not counted: for those who print it */
    *ret = (thole_outcome){.output = {output, end->data.len}, .execution = turn->execution};
    if (end->kind == EVENT_COMPLETED)
        ret->status = THOLE_INSTANCE_COMPLETED;
    else
        ret->status = end->kind == EVENT_FAILED ? THOLE_INSTANCE_FAILED : THOLE_INSTANCE_CANCELLED;
    return THOLE_OK;
}

void thole_outcome_release(thole_outcome *outcome)
{
    if (outcome == NULL)
        return;
    free((void *)(uintptr_t)outcome->output.ptr);
    memset(outcome, 0, sizeof *outcome);
}

/* A notice is only sent for what is committed. Without one the record may be what a deposed engine wrote
 * last. */
static thole_status check_counts(struct watch *watch, const struct record *record, uint64_t sequence,
                                 bool *ret_counts, thole_error *reterr)
{
    struct owner owner;
    pthread_mutex_lock(&watch->client->lock);
    *ret_counts = watch->ended == record->turn.execution;
    pthread_mutex_unlock(&watch->client->lock);
    if (*ret_counts)
        return THOLE_OK;
    THOLE_TRY(owner_read(watch->client, watch->instance, &owner, reterr));
    *ret_counts = !owner_voids(&owner, record, sequence);
    return THOLE_OK;
}

/* Is the instance that was found the one that this call started? Always, when it started none. */
static thole_status check_ours(struct watch *watch, const struct turn *turn, thole_error *reterr)
{
    uint64_t sequence;
    if (watch->request.len == 0 || holds_now(watch, is_accepted) ||
        thole_slice_equal(turn_request(turn), watch->request))
        return THOLE_OK;
    return check_own(watch, &sequence, reterr);
}

struct finding {
    bool exists, ended;
};

static thole_status examine(struct watch *watch, uint64_t until_ms, struct finding *ret,
                            thole_outcome *outcome, thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    bool counts = false;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    ret->exists = status == THOLE_OK && sequence > 0;
    if (ret->exists)
        status = check_ours(watch, &record.turn, reterr);
    if (status == THOLE_OK && ret->exists && turn_end(&record.turn) != NULL)
        status = check_counts(watch, &record, sequence, &counts, reterr);
    if (status == THOLE_OK && counts)
        status = outcome_fill(&record.turn, outcome, reterr);
    ret->ended = status == THOLE_OK && counts;
    arena_release(&arena);
    return status;
}

static bool is_worth_waking(const struct watch *watch)
{
    return watch->look == LOOK_ANSWERED || watch->look == LOOK_FAILED || watch->look_wanted ||
           watch->rejected;
}

static thole_status not_ended(struct watch *watch, const struct finding *finding, thole_error *reterr)
{
    if (finding->exists)
        return thole_fail(reterr, THOLE_TIMEOUT, "instance \"%.*s\" has not ended yet",
                          THOLE_FMT(watch->instance));
    if (watch->request.len > 0)
        return thole_fail(
            reterr, THOLE_TIMEOUT,
            "the start of \"%.*s\" is stored, but no engine has taken it yet; is one running for "
            "namespace %s?",
            THOLE_FMT(watch->instance), watch->client->topology.ns);
    return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                      THOLE_FMT(watch->instance), watch->client->topology.ns);
}

/* A rejection of this start counts only when the history says so: it may answer a repetition. */
static thole_status check_rejection(struct watch *watch, thole_error *reterr)
{
    uint64_t sequence;
    if (!holds_now(watch, is_rejected))
        return THOLE_OK;
    THOLE_TRY(check_own(watch, &sequence, reterr));
    pthread_mutex_lock(&watch->client->lock);
    watch->rejected = false;
    pthread_mutex_unlock(&watch->client->lock);
    return THOLE_OK;
}

/* Sleeps until something is worth a look; the last look comes when the time is over. */
static thole_status await_end(struct watch *watch, uint64_t pause_ms, uint64_t until_ms, thole_outcome *ret,
                              thole_error *reterr)
{
    for (;; pause_ms = LOOK_PAUSE_MS) {
        struct finding finding = {.exists = false};
        uint64_t const pause = client_now_ms() + pause_ms;
        (void)watch_sleep(watch, is_worth_waking, pause < until_ms ? pause : until_ms);
        uint64_t const now = client_now_ms(), patience = now + watch->client->timeout_ms;
        THOLE_TRY(check_rejection(watch, reterr));
        THOLE_TRY(examine(watch, patience > until_ms ? patience : until_ms, &finding, ret, reterr));
        if (finding.ended)
            return THOLE_OK;
        if (now >= until_ms)
            return not_ended(watch, &finding, reterr);
    }
}

/* A wait of more than that is one for ever. */
static uint64_t deadline(uint64_t wait_ms)
{
    return client_now_ms() + (wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX);
}

/* ---- the calls ---- */

thole_status thole_client_start(thole_client *client, thole_slice instance, thole_slice orchestration,
                                thole_slice input, bool *ret_accepted, thole_error *reterr)
{
    struct request_id id;
    struct watch watch;
    struct buf body;
    bool accepted = false;
    THOLE_TRY(check_start(client, instance, orchestration, input, reterr));
    THOLE_TRY(request_id_make(&id, reterr));
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = instance,
                                    .orchestration = orchestration,
                                    .data = input,
                                    .request_id = thole_slice_from(id.text)};
    buf_init(&body, MESSAGE_BYTES_MAX);
    thole_status status = encode(&message, &body, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, WATCH_NOTICES, instance, message.request_id, &watch, reterr);
    if (status == THOLE_OK) {
        status = start_watched(&watch, buf_bytes(&body), deadline(client->timeout_ms), &accepted, reterr);
        watch_close(&watch);
    }
    buf_release(&body);
    if (status == THOLE_OK && ret_accepted != NULL)
        *ret_accepted = accepted;
    return status;
}

thole_status thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                               thole_outcome *ret_outcome, thole_error *reterr)
{
    struct watch watch;
    uint64_t const until = deadline(wait_ms);
    THOLE_TRY(id_check(instance, reterr));
    THOLE_TRY(watch_open(client, wait_ms == 0 ? WATCH_QUIET : WATCH_NOTICES, instance, (thole_slice){NULL, 0},
                         &watch, reterr));
    watch_look(&watch);
    thole_status const status = await_end(&watch, LOOK_PAUSE_MS, until, ret_outcome, reterr);
    watch_close(&watch);
    return status;
}

/* The fewest round trips: nothing is asked before the start is sent, since the engine rejects an id in use.
 */
thole_status thole_client_run(thole_client *client, thole_slice instance, thole_slice orchestration,
                              thole_slice input, uint64_t wait_ms, thole_outcome *ret_outcome,
                              thole_error *reterr)
{
    struct request_id id;
    struct watch watch;
    struct buf body;
    uint64_t const until = deadline(wait_ms);
    THOLE_TRY(check_start(client, instance, orchestration, input, reterr));
    THOLE_TRY(request_id_make(&id, reterr));
    struct message const message = {.kind = MESSAGE_START,
                                    .instance = instance,
                                    .orchestration = orchestration,
                                    .data = input,
                                    .request_id = thole_slice_from(id.text)};
    buf_init(&body, MESSAGE_BYTES_MAX);
    thole_status status = encode(&message, &body, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, WATCH_NOTICES, instance, message.request_id, &watch, reterr);
    if (status == THOLE_OK) {
        status = watch_publish(&watch, "start", buf_bytes(&body), deadline(client->timeout_ms), reterr);
        if (status == THOLE_OK)
            status = await_end(&watch, FIRST_LOOK_PAUSE_MS, until, ret_outcome, reterr);
        watch_close(&watch);
    }
    buf_release(&body);
    return status;
}

static thole_status cancel_watched(struct watch *watch, thole_slice body, uint64_t until_ms,
                                   thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    arena_release(&arena);
    if (status != THOLE_OK && sequence == 0)
        return status;
    if (sequence == 0)
        return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                          THOLE_FMT(watch->instance), watch->client->topology.ns);
    return watch_publish(watch, "cancel", body, until_ms, reterr);
}

thole_status thole_client_cancel(thole_client *client, thole_slice instance, thole_slice reason,
                                 thole_error *reterr)
{
    struct request_id id;
    struct watch watch;
    struct buf body;
    THOLE_TRY(id_check(instance, reterr));
    if (reason.len > REASON_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "the reason has %zu bytes, at most %d are allowed",
                          reason.len, REASON_BYTES_MAX);
    THOLE_TRY(request_id_make(&id, reterr));
    struct message const message = {.kind = MESSAGE_CANCEL,
                                    .instance = instance,
                                    .data = reason,
                                    .request_id = thole_slice_from(id.text)};
    buf_init(&body, MESSAGE_BYTES_MAX);
    thole_status status = encode(&message, &body, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, WATCH_QUIET, instance, message.request_id, &watch, reterr);
    if (status == THOLE_OK) {
        status = cancel_watched(&watch, buf_bytes(&body), deadline(client->timeout_ms), reterr);
        watch_close(&watch);
    }
    buf_release(&body);
    return status;
}
