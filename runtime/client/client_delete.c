/* delete: asks the engine, and waits for its answer. */
#include "client_archive.h"
#include "client_holds.h"
#include "client_restored.h"
#include "pending_start.h"
#include "watch.h"
#include <assert.h>
#include <string.h>

enum { FIRST_PAUSE_MS = 250 }; /* before the stream is read for the deletion; doubled each time */

static bool client_delete_is_accepted(const struct watch *watch)
{
    return watch->accepted;
}

static thole_status client_delete_not_ended(const struct watch *watch, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "instance \"%.*s\" has not ended; nothing was changed: cancel or terminate it first, or "
        "delete it with force",
        THOLE_FMT(watch->instance));
}

/* The history has none. One whose start waits runs when the deletion is taken, like one that has begun
 * meanwhile: so only force deletes it. */
static thole_status client_delete_look_for_start(const struct watch *watch, bool force, thole_error *reterr)
{
    enum absence absence;
    THOLE_TRY(absence_explain(watch->client, watch->instance, &absence, reterr));
    return force ? THOLE_OK : client_delete_not_ended(watch, reterr);
}

/* Events that wait for an instance are deleted like one that has ended. */
static bool events_wait(const struct record *record)
{
    const struct turn *turn = &record->turn;
    return record->kind == RECORD_TURN && turn->execution == 0 && turn->events_len > 0 &&
           turn->events[turn->events_len - 1].kind != EVENT_DISCARDED;
}

static thole_status not_archived(const struct watch *watch, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND,
                      "instance \"%.*s\" is not the one that was archived; nothing was changed",
                      THOLE_FMT(watch->instance));
}

/* Looks up the instance and whether it may be deleted. *ret_execution: the execution to delete; 0: any.
 * @p only_sequence: of the record that must be its last; 0: any. */
static thole_status client_delete_look(struct watch *watch, bool force, uint64_t only_sequence,
                                       uint64_t until_ms, uint64_t *ret_execution, thole_error *reterr)
{
    struct arena arena;
    struct record record = {.kind = RECORD_UNKNOWN};
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    bool const damaged = status != THOLE_OK && sequence > 0; /* exists: the engine decides */
    if (damaged)
        status = THOLE_OK;
    else if (status == THOLE_OK && sequence == 0 && !events_wait(&record))
        status = client_delete_look_for_start(watch, force, reterr);
    if (status == THOLE_OK && only_sequence > 0 && damaged)
        status = thole_fail(reterr, THOLE_CONFLICT,
                            "the last record of instance \"%.*s\" does not decode; nothing was changed",
                            THOLE_FMT(watch->instance));
    if (status == THOLE_OK && only_sequence > 0 && sequence != only_sequence)
        status = not_archived(watch, reterr);
    if (status == THOLE_OK && !damaged && sequence > 0 && turn_end(&record.turn) == NULL && !force)
        status = client_delete_not_ended(watch, reterr);
    *ret_execution = damaged ? 0 : record.turn.execution;
    arena_release(&arena);
    return status;
}

/* Whether that execution was deleted. */
static thole_status client_delete_is_gone(struct watch *watch, uint64_t execution, bool *ret,
                                          thole_error *reterr)
{
    struct life life;
    assert(execution > 0);
    THOLE_TRY(life_read(watch->client, watch->instance, &life, reterr));
    *ret = life.deleted > 0 && life.first > execution;
    return THOLE_OK;
}

/* Of one that is held the engine takes no request, and answers none. What cannot be found out is the engine's
 * to say. */
static thole_status check_hold(struct watch *watch, thole_error *reterr)
{
    thole_error held = {.status = THOLE_OK};
    if (client_check_hold(watch->client, watch->instance, &held) != THOLE_CONFLICT)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_CONFLICT, "%s", held.text);
}

/* A notice may be lost: the record counts. */
static thole_status client_delete_await(struct watch *watch, uint64_t execution, uint64_t until_ms,
                                        bool *ret_accepted, thole_error *reterr)
{
    for (uint64_t pause_ms = FIRST_PAUSE_MS; !*ret_accepted && client_now_ms() < until_ms; pause_ms *= 2) {
        uint64_t const pause = client_now_ms() + pause_ms;
        bool const decided = watch_sleep(watch, watch_is_decided, pause < until_ms ? pause : until_ms);
        if (decided && !watch_sleep(watch, client_delete_is_accepted, 0))
            return client_delete_not_ended(watch, reterr);
        if (decided)
            *ret_accepted = true;
        else if (execution > 0)
            THOLE_TRY(client_delete_is_gone(watch, execution, ret_accepted, reterr));
        if (!*ret_accepted && pause_ms == FIRST_PAUSE_MS)
            THOLE_TRY(check_hold(watch, reterr));
    }
    return THOLE_OK;
}

static thole_status delete_watched(struct watch *watch, struct message *message, uint64_t only_sequence,
                                   bool *ret_accepted, thole_error *reterr)
{
    struct letter letter;
    uint64_t const until_ms = client_now_ms() + watch->client->timeout_ms;
    THOLE_TRY(
        client_delete_look(watch, message->force, only_sequence, until_ms, &message->execution, reterr));
    buf_init(&letter.body, MESSAGE_BYTES_MAX);
    thole_status status = client_encode(watch->client, message, &letter, reterr);
    if (status == THOLE_OK)
        status = watch_publish(watch, &letter, until_ms, reterr);
    if (status == THOLE_OK)
        status = client_delete_await(watch, message->execution, until_ms, ret_accepted, reterr);
    buf_release(&letter.body);
    return status;
}

static thole_status delete_it(thole_client *client, struct message *message, uint64_t only_sequence,
                              bool *ret_accepted, thole_error *reterr)
{
    struct request_id id;
    struct watch watch;
    bool accepted = false;
    THOLE_TRY(client_check_id(message->instance, reterr));
    THOLE_TRY(client_check_reason(message->data, reterr));
    THOLE_TRY(request_id_make(&id, reterr));
    message->request_id = thole_slice_from(id.text);
    THOLE_TRY(watch_open(client, WATCH_NOTICES, message->instance, message->request_id, &watch, reterr));
    thole_status const status = delete_watched(&watch, message, only_sequence, &accepted, reterr);
    watch_close(&watch);
    if (status == THOLE_OK && ret_accepted != NULL)
        *ret_accepted = accepted;
    return status;
}

/* Deletes the restored records of an instance that is not in the log. No engine is asked: engines do not know
 * restored records. */
static thole_status delete_restored(thole_client *client, thole_slice instance, bool *ret,
                                    thole_error *reterr)
{
    struct restored_place const place = client_restored_place(client, instance);
    uint64_t execution = 0;
    bool deleted = false, is = false;
    *ret = false;
    THOLE_TRY(history_latest(client, instance, &execution, &deleted, reterr));
    thole_status status = THOLE_OK;
    if (deleted || execution == 0) /* the deletion may be gone */
        status = restored_receipt(client->connection, &place, &is, NULL, reterr);
    if (!is)
        return status == THOLE_DENIED ? THOLE_OK : status; /* a user who may not read them sees none */
    THOLE_TRY(client_check_hold(client, instance, reterr));
    THOLE_TRY(restored_remove(client->connection, &place, reterr));
    *ret = true;
    return THOLE_OK;
}

thole_status thole_client_delete(thole_client *client, thole_slice instance,
                                 const thole_delete_options *options, bool *ret_accepted, thole_error *reterr)
{
    thole_delete_options const none = {.size = sizeof none};
    options = options == NULL ? &none : options;
    if (options->size < sizeof none)
        return thole_fail(reterr, THOLE_INVALID, "thole_delete_options.size is not set");
    struct message message = {
        .kind = MESSAGE_DELETE, .instance = instance, .data = options->reason, .force = options->force};
    bool removed = false;
    thole_error error = {.status = THOLE_OK};
    thole_status status = delete_it(client, &message, 0, ret_accepted, reterr);
    if (status != THOLE_NOT_FOUND)
        return status;
    thole_status const restored = delete_restored(client, instance, &removed, &error);
    if (restored == THOLE_OK && removed && ret_accepted != NULL)
        *ret_accepted = true;
    if (restored == THOLE_OK)
        return removed ? THOLE_OK : status;
    return thole_fail(reterr, restored, "%s", error.text);
}

thole_status client_delete_archived(thole_client *client, thole_slice instance, uint64_t last_sequence,
                                    thole_slice reason, bool *ret_accepted, thole_error *reterr)
{
    struct message message = {.kind = MESSAGE_DELETE, .instance = instance, .data = reason};
    assert(last_sequence > 0);
    return delete_it(client, &message, last_sequence, ret_accepted, reterr);
}

thole_status client_is_open(thole_client *client, thole_slice instance, bool *ret, thole_error *reterr)
{
    struct arena arena;
    struct watch watch;
    struct record record = {.kind = RECORD_UNKNOWN};
    uint64_t sequence = 0;
    THOLE_TRY(watch_open(client, WATCH_QUIET, instance, (thole_slice){NULL, 0}, &watch, reterr));
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status =
        watch_take_look(&watch, client_now_ms() + client->timeout_ms, &arena, &sequence, &record, reterr);
    bool const damaged = status != THOLE_OK && sequence > 0;
    *ret = damaged || (sequence > 0 && turn_end(&record.turn) == NULL);
    arena_release(&arena);
    watch_close(&watch);
    return damaged ? THOLE_OK : status;
}
