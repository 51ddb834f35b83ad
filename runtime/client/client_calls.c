/* start, run, wait. */
#include "client_known.h"
#include "pending_start.h"
#include "publish_once.h"
#include "watch.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LOOK_PAUSE_MS = 5000, /* a waiter without a notice reads the stream this often: notices may be lost */
    FIRST_LOOK_PAUSE_MS = 250, /* of run, when no engine has taken the start for so long */
};

static const uint64_t WAIT_MS_MAX = UINT64_C(100) * 365 * 24 * 3600 * 1000;

/* ---- whether the instance is this call's ---- */

static thole_status in_use(thole_slice instance, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_CONFLICT,
                      "instance \"%.*s\" exists already (running or ended); nothing was changed",
                      THOLE_FMT(instance));
}

/* THOLE_OK: the history begins with this watch's start, or there is none (*ret_sequence = 0). */
static thole_status client_calls_check_own(struct watch *watch, uint64_t *ret_sequence, thole_error *reterr)
{
    struct arena arena;
    struct turn first = {.events_len = 0};
    assert(watch->start != NULL); /* a wait has started nothing */
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status =
        history_first_turn(watch->client, watch->instance, &arena, ret_sequence, &first, reterr);
    if (status == THOLE_OK && *ret_sequence > 0 && !thole_slice_equal(turn_request(&first), watch->request))
        status = in_use(watch->instance, reterr);
    else if (status == THOLE_OK && repetition_in(&first, watch->start) == REPETITION_OTHER)
        status = repetition_refuse(watch->start, reterr);
    arena_release(&arena);
    return status;
}

/* ---- start ---- */

static bool client_calls_is_accepted(const struct watch *watch)
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
    if (sequence > 0) /* true also when the record cannot be read: the instance exists */
        status = in_use(watch->instance, reterr);
    arena_release(&arena);
    return status;
}

/* Waits for the engine's notice, and reads the stream now and then, less and less often: a notice may be
 * lost. *ret_exists: the history was found meanwhile. */
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
        if (watch_sleep(watch, watch_is_decided, pause < until_ms ? pause : until_ms))
            break;
        status = watch_take_look(watch, client_now_ms() + watch->client->timeout_ms, &arena, &sequence,
                                 &record, reterr);
        arena_release(&arena);
    }
    *ret_exists = sequence > 0;
    return sequence > 0 ? THOLE_OK : status; /* an unreadable record exists, too */
}

static thole_status starts_before(thole_slice instance, thole_error *reterr)
{
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "another start of instance \"%.*s\" waits for an engine and comes before this one, which "
        "will be refused",
        THOLE_FMT(instance));
}

/* No engine has taken it. Of two starts that wait the first one counts, unless a deletion of that one waits,
 * too: then this one may begin the next instance. An event is delivered to whatever is started. What cannot
 * be read is no reason to refuse it: it is stored. */
static thole_status check_first(struct watch *watch, thole_error *reterr)
{
    struct pending_start first;
    struct arena arena;
    bool deleted = true;
    thole_status status = THOLE_OK;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const found =
        pending_start_find(watch->client, watch->instance, &arena, &first, NULL) == THOLE_OK && first.is;
    if (found && thole_slice_equal(first.message.request_id, watch->request)) {
        if (!repetition_is_same(watch->start, &first.message))
            status = repetition_refuse(watch->start, reterr);
    } else if (found && watch->start->event_name.len == 0 &&
               pending_deletion_find(watch->client, watch->instance, first.sequence, &deleted, NULL) ==
                   THOLE_OK &&
               !deleted) {
        status = starts_before(watch->instance, reterr);
    }
    arena_release(&arena);
    return status;
}

/* @p once: its request id is the caller's. */
static thole_status publish_start(struct watch *watch, const struct letter *letter, bool once,
                                  uint64_t until_ms, thole_error *reterr)
{
    return once ? publish_once(watch, letter, watch->start, until_ms, reterr)
                : watch_publish(watch, letter, until_ms, reterr);
}

/* @p repeated: the request id is the caller's, so an existing instance may be from this start. */
static thole_status start_watched(struct watch *watch, const struct letter *letter, bool repeated,
                                  uint64_t until_ms, bool *ret_accepted, thole_error *reterr)
{
    uint64_t sequence = 0;
    bool exists = false;
    thole_status const unused = check_unused(watch, until_ms, reterr);
    *ret_accepted = unused == THOLE_CONFLICT && repeated;
    if (unused != THOLE_OK)
        return *ret_accepted ? client_calls_check_own(watch, &sequence, reterr) : unused;
    THOLE_TRY(publish_start(watch, letter, repeated, until_ms, reterr));
    THOLE_TRY(await_decision(watch, until_ms, &exists, reterr));
    *ret_accepted = holds_now(watch, client_calls_is_accepted);
    if (!*ret_accepted && !exists && !holds_now(watch, is_rejected))
        return check_first(watch, reterr);
    if (*ret_accepted)
        return THOLE_OK;
    THOLE_TRY(watch_refusal(watch, reterr));
    THOLE_TRY(client_calls_check_own(watch, &sequence,
                                     reterr)); /* a rejection may answer a repetition of an accepted start */
    *ret_accepted = sequence > 0;
    return THOLE_OK;
}

/* *ret: the instance has ended, as far as its history can be read. */
static thole_status look_for_ended(struct watch *watch, uint64_t until_ms, bool *ret, thole_error *reterr)
{
    struct arena arena;
    struct record record;
    struct log_rule owner;
    uint64_t sequence = 0;
    *ret = false;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    if (status == THOLE_OK && sequence > 0 && turn_end(&record.turn) != NULL) {
        status = owner_read(watch->client, watch->instance, &owner, reterr);
        *ret = status == THOLE_OK && !log_rule_surely_void(&owner, &record, sequence);
    }
    arena_release(&arena);
    return sequence > 0 && status == THOLE_CORRUPT ? THOLE_OK : status; /* the engine's to say */
}

/* Whether the history has the event of this signal with start. */
static thole_status look_for_event(struct watch *watch, bool *ret, thole_error *reterr)
{
    enum repetition found;
    THOLE_TRY(history_repetition(watch->client, watch->start, &found, reterr));
    *ret = found == REPETITION_SAME;
    return found == REPETITION_OTHER ? repetition_refuse(watch->start, reterr) : THOLE_OK;
}

static thole_status event_dropped(const struct watch *watch, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_CONFLICT,
                      "instance \"%.*s\" has ended; the event was dropped, nothing was started",
                      THOLE_FMT(watch->instance));
}

/* Whether an instance that has ended took the event before; else the event has no effect. */
static thole_status check_ended(struct watch *watch, uint64_t until_ms, bool *ret_ended, bool *ret_accepted,
                                thole_error *reterr)
{
    THOLE_TRY(look_for_ended(watch, until_ms, ret_ended, reterr));
    if (!*ret_ended)
        return THOLE_OK;
    THOLE_TRY(look_for_event(watch, ret_accepted, reterr));
    return *ret_accepted ? THOLE_OK : event_dropped(watch, reterr);
}

/* The engine has not answered in time. */
static thole_status check_undecided(struct watch *watch, bool *ret_accepted, thole_error *reterr)
{
    bool ended;
    uint64_t const until = client_now_ms() + watch->client->timeout_ms;
    thole_status const status = check_ended(watch, until, &ended, ret_accepted, reterr);
    if (ended && (status == THOLE_OK || status == THOLE_CONFLICT))
        return status;
    return check_first(watch, reterr);
}

/* Signal with start: the instance may be there before. A notice, which may be lost, or the history tells
 * whether the event was taken. After the message is stored no failure is returned but that it is dropped: a
 * repetition would be another event.
 */
static thole_status start_signalled(struct watch *watch, const struct letter *letter, bool repeated,
                                    uint64_t until_ms, bool *ret_accepted, thole_error *reterr)
{
    bool ended;
    THOLE_TRY(check_ended(watch, until_ms, &ended, ret_accepted, reterr));
    if (ended)
        return THOLE_OK;
    THOLE_TRY(publish_start(watch, letter, repeated, until_ms, reterr));
    for (uint64_t pause_ms = FIRST_LOOK_PAUSE_MS; client_now_ms() < until_ms; pause_ms *= 2) {
        uint64_t const pause = client_now_ms() + pause_ms;
        bool const decided = watch_sleep(watch, watch_is_decided, pause < until_ms ? pause : until_ms);
        *ret_accepted = holds_now(watch, client_calls_is_accepted);
        if (*ret_accepted)
            return THOLE_OK;
        thole_status const status = look_for_event(watch, ret_accepted, reterr);
        if (*ret_accepted || status == THOLE_CONFLICT)
            return status;
        if (!decided)
            continue;
        THOLE_TRY(status);
        THOLE_TRY(watch_refusal(watch, reterr));
        return event_dropped(watch, reterr);
    }
    return check_undecided(watch, ret_accepted, reterr);
}

/* ---- the end ---- */

static thole_status outcome_make(thole_instance_status status, uint64_t execution, thole_slice data,
                                 thole_slice type, thole_outcome *ret, thole_error *reterr)
{
    uint8_t *output =
        calloc(1, data.len + 1 + type.len + 1); /* NULs are not counted: for those who print it */
    if (output == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "out of memory for a result of %zu bytes", data.len);
    if (data.len > 0)
        memcpy(output, data.ptr, data.len);
    if (type.len > 0)
        memcpy(output + data.len + 1, type.ptr, type.len);
    *ret = (thole_outcome){.status = status,
                           .output = {output, data.len},
                           .error_type = {output + data.len + 1, type.len},
                           .execution = execution};
    return THOLE_OK;
}

static thole_status outcome_fill(const struct turn *turn, thole_outcome *ret, thole_error *reterr)
{
    const struct event *end = turn_end(turn);
    assert(end != NULL);
    return outcome_make(end_status(end->kind), turn->execution, end->data, end->error_type, ret, reterr);
}

/* The live event had the output of the awaited execution; its record need not be read, since live events are
 * sent after the commit. */
static thole_status outcome_heard(struct watch *watch, bool *ret_heard, thole_outcome *ret,
                                  thole_error *reterr)
{
    struct buf result = {.ptr = NULL};
    uint64_t execution = 0;
    pthread_mutex_lock(&watch->client->lock);
    *ret_heard = watch->completed;
    if (*ret_heard) {
        result = watch->result;
        buf_init(&watch->result, RECORD_BYTES_MAX);
        watch->completed = false;
        execution = watch->execution;
    }
    pthread_mutex_unlock(&watch->client->lock);
    if (!*ret_heard)
        return THOLE_OK;
    thole_status const status = outcome_make(THOLE_INSTANCE_COMPLETED, execution, buf_bytes(&result),
                                             (thole_slice){NULL, 0}, ret, reterr);
    buf_release(&result);
    return status;
}

void thole_outcome_release(thole_outcome *outcome)
{
    if (outcome == NULL)
        return;
    free((void *)(uintptr_t)outcome->output.ptr);
    memset(outcome, 0, sizeof *outcome);
}

/* A notice is only sent for what is committed. Without one the record may be void, written by an engine that
 * had lost the partition. */
static thole_status check_counts(struct watch *watch, const struct record *record, uint64_t sequence,
                                 bool *ret_counts, thole_error *reterr)
{
    struct log_rule owner;
    pthread_mutex_lock(&watch->client->lock);
    *ret_counts = watch->ended == record->turn.execution;
    pthread_mutex_unlock(&watch->client->lock);
    if (*ret_counts)
        return THOLE_OK;
    THOLE_TRY(owner_read(watch->client, watch->instance, &owner, reterr));
    *ret_counts = !log_rule_surely_void(&owner, record, sequence);
    return THOLE_OK;
}

/* Whether this call started the instance that was found; true for calls that start none. */
static thole_status check_ours(struct watch *watch, const struct turn *turn, thole_error *reterr)
{
    uint64_t sequence;
    if (watch->request.len == 0 || holds_now(watch, client_calls_is_accepted) ||
        thole_slice_equal(turn_request(turn), watch->request))
        return THOLE_OK;
    return client_calls_check_own(watch, &sequence, reterr);
}

struct finding {
    bool exists, ended, deleted;
};

static thole_status client_calls_examine(struct watch *watch, uint64_t until_ms, struct finding *ret,
                                         thole_outcome *outcome, thole_error *reterr)
{
    struct arena arena;
    struct record record;
    uint64_t sequence = 0;
    bool counts = false;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = watch_take_look(watch, until_ms, &arena, &sequence, &record, reterr);
    ret->exists = status == THOLE_OK && sequence > 0;
    ret->deleted = status == THOLE_OK && sequence == 0 && record.kind == RECORD_DELETED;
    if (ret->exists)
        status = check_ours(watch, &record.turn, reterr);
    if (status == THOLE_OK && ret->exists && turn_end(&record.turn) == NULL)
        watch_expect(watch, record.turn.execution);
    if (status == THOLE_OK && ret->exists && turn_end(&record.turn) != NULL)
        status = check_counts(watch, &record, sequence, &counts, reterr);
    if (status == THOLE_OK && counts)
        status = outcome_fill(&record.turn, outcome, reterr);
    ret->ended = status == THOLE_OK && counts;
    assert(!ret->ended || ret->exists);
    assert(!ret->exists || !ret->deleted);
    arena_release(&arena);
    return status;
}

static thole_status client_calls_not_ended(struct watch *watch, bool exists, thole_error *reterr)
{
    if (!exists && watch->start != NULL)
        THOLE_TRY(check_first(watch, reterr));
    enum absence absence = ABSENCE_START; /* of a call's own start */
    if (!exists && watch->request.len == 0)
        THOLE_TRY(absence_explain(watch->client, watch->instance, &absence, reterr));
    if (exists || absence == ABSENCE_OVER)
        return thole_fail(reterr, THOLE_TIMEOUT, "instance \"%.*s\" has not ended yet",
                          THOLE_FMT(watch->instance));
    return thole_fail(reterr, THOLE_TIMEOUT,
                      "the start of \"%.*s\" is stored, but no engine has taken it yet; is one running for "
                      "namespace %s?",
                      THOLE_FMT(watch->instance), watch->client->topology.ns);
}

/* A rejection of this start counts only if the history confirms it: it may be the answer to a repetition. */
static thole_status check_rejection(struct watch *watch, thole_error *reterr)
{
    uint64_t sequence;
    if (!holds_now(watch, is_rejected))
        return THOLE_OK;
    THOLE_TRY(client_calls_check_own(watch, &sequence, reterr));
    if (sequence == 0)
        THOLE_TRY(watch_refusal(watch, reterr));
    pthread_mutex_lock(&watch->client->lock);
    watch->rejected = false;
    pthread_mutex_unlock(&watch->client->lock);
    return THOLE_OK;
}

/* Sleeps until there is a reason to read the stream; reads it a last time when the time is over. */
static thole_status await_end(struct watch *watch, uint64_t pause_ms, uint64_t until_ms, thole_outcome *ret,
                              thole_error *reterr)
{
    bool existed = false;
    for (;;) {
        struct finding finding = {.exists = false};
        bool heard;
        uint64_t const pause = client_now_ms() + pause_ms;
        (void)watch_sleep(watch, watch_is_worth_waking, pause < until_ms ? pause : until_ms);
        THOLE_TRY(outcome_heard(watch, &heard, ret, reterr));
        if (heard)
            return THOLE_OK;
        watch_listen_apart(watch);
        uint64_t const now = client_now_ms(), patience = now + watch->client->timeout_ms;
        thole_status status = check_rejection(watch, reterr);
        if (status == THOLE_OK)
            status =
                client_calls_examine(watch, patience > until_ms ? patience : until_ms, &finding, ret, reterr);
        if (status == THOLE_UNAVAILABLE && client_now_ms() < until_ms) { /* there is time for another look */
            watch_pause(watch, until_ms);
            pause_ms = 0;
            continue;
        }
        THOLE_TRY(status);
        if (finding.ended)
            return THOLE_OK;
        existed = existed || finding.exists || holds_now(watch, client_calls_is_accepted);
        if (finding.deleted && existed)
            return thole_fail(reterr, THOLE_NOT_FOUND, "instance \"%.*s\" was deleted",
                              THOLE_FMT(watch->instance));
        if (now >= until_ms)
            return client_calls_not_ended(watch, finding.exists, reterr);
        if (!existed && watch->start != NULL && pause_ms == LOOK_PAUSE_MS)
            THOLE_TRY(check_first(watch, reterr)); /* one that will be refused is not waited for */
        pause_ms = LOOK_PAUSE_MS;
    }
}

/* Longer waits are without a limit. */
static uint64_t client_calls_deadline(uint64_t wait_ms)
{
    return client_now_ms() + (wait_ms < WAIT_MS_MAX ? wait_ms : WAIT_MS_MAX);
}

/* ---- the calls ---- */

/* A start in progress: its message and its watch. */
struct starting {
    struct request_id id;
    struct letter letter;
    struct watch watch;
};

static thole_status starting_open(thole_client *client, struct message *start, struct starting *ret,
                                  thole_error *reterr)
{
    THOLE_TRY(client_check_start(client, start, reterr));
    THOLE_TRY(client_check_request_id(start->request_id, reterr));
    start->kind = MESSAGE_START;
    if (start->request_id.len == 0) {
        THOLE_TRY(request_id_make(&ret->id, reterr));
        start->request_id = thole_slice_from(ret->id.text);
    }
    buf_init(&ret->letter.body, MESSAGE_BYTES_MAX);
    thole_status status = client_encode(client, start, &ret->letter, reterr);
    if (status == THOLE_OK)
        status = watch_open(client, WATCH_NOTICES, start->instance, start->request_id, &ret->watch, reterr);
    ret->watch.start = start;
    if (status != THOLE_OK)
        buf_release(&ret->letter.body);
    return status;
}

static void starting_close(struct starting *starting)
{
    watch_close(&starting->watch);
    buf_release(&starting->letter.body);
}

static thole_start_options const start_plain = {.size = sizeof start_plain};

/* The message of a start with these options. */
static thole_status start_message(const thole_start_options *options, struct message *ret,
                                  thole_error *reterr)
{
    if (options->size < sizeof *options)
        return thole_fail(reterr, THOLE_INVALID, "thole_start_options.size is not set");
    ret->version = options->version;
    ret->event_name = options->event;
    ret->event_data = options->event_data;
    ret->request_id = options->request_id;
    ret->trace = (struct trace){options->traceparent, options->tracestate};
    ret->trace = trace_valid(&ret->trace);
    THOLE_TRY(client_sender(&options->sender, &ret->source.actor, reterr));
    ret->source.actor.trace = (struct trace){.list = {NULL, 0}}; /* a start has a trace of its own */
    return THOLE_OK;
}

static thole_status start_sent(struct starting *starting, const thole_start_options *options,
                               uint64_t until_ms, bool *ret_accepted, thole_error *reterr)
{
    bool const repeated = options->request_id.len > 0;
    return (options->event.len > 0 ? start_signalled : start_watched)(
        &starting->watch, &starting->letter, repeated, until_ms, ret_accepted, reterr);
}

thole_status thole_client_start_with(thole_client *client, thole_slice instance, thole_slice orchestration,
                                     thole_slice input, const thole_start_options *options,
                                     bool *ret_accepted, thole_error *reterr)
{
    struct starting starting;
    struct message start = {.instance = instance, .orchestration = orchestration, .data = input};
    bool accepted = false;
    options = options == NULL ? &start_plain : options;
    THOLE_TRY(start_message(options, &start, reterr));
    if (options->require_known)
        THOLE_TRY(client_require_known(client, orchestration, options->version, reterr));
    THOLE_TRY(starting_open(client, &start, &starting, reterr));
    thole_status const status =
        start_sent(&starting, options, client_calls_deadline(client->timeout_ms), &accepted, reterr);
    starting_close(&starting);
    if (status == THOLE_OK && ret_accepted != NULL)
        *ret_accepted = accepted;
    return status;
}

thole_status thole_client_start(thole_client *client, thole_slice instance, thole_slice orchestration,
                                thole_slice input, bool *ret_accepted, thole_error *reterr)
{
    return thole_client_start_with(client, instance, orchestration, input, NULL, ret_accepted, reterr);
}

thole_status thole_client_wait(thole_client *client, thole_slice instance, uint64_t wait_ms,
                               thole_outcome *ret_outcome, thole_error *reterr)
{
    struct watch watch;
    uint64_t const until = client_calls_deadline(wait_ms);
    THOLE_TRY(client_check_id(instance, reterr));
    THOLE_TRY(watch_open(client, wait_ms == 0 ? WATCH_QUIET : WATCH_NOTICES, instance, (thole_slice){NULL, 0},
                         &watch, reterr));
    watch_look(&watch);
    thole_status const status = await_end(&watch, LOOK_PAUSE_MS, until, ret_outcome, reterr);
    watch_close(&watch);
    return status;
}

/* Saves a round trip: nothing is checked before the start is sent, since the engine rejects an id in use.
 * With an event or an id of its own it may be another start that counts: that is looked up. */
thole_status thole_client_run_with(thole_client *client, thole_slice instance, thole_slice orchestration,
                                   thole_slice input, const thole_start_options *options, uint64_t wait_ms,
                                   thole_outcome *ret_outcome, thole_error *reterr)
{
    struct starting starting;
    struct message start = {.instance = instance, .orchestration = orchestration, .data = input};
    uint64_t const until = client_calls_deadline(wait_ms);
    bool accepted = false;
    options = options == NULL ? &start_plain : options;
    THOLE_TRY(start_message(options, &start, reterr));
    if (options->require_known)
        THOLE_TRY(client_require_known(client, orchestration, options->version, reterr));
    bool const looks = options->event.len > 0 || options->request_id.len > 0;
    THOLE_TRY(starting_open(client, &start, &starting, reterr));
    uint64_t const stored = client_calls_deadline(client->timeout_ms);
    thole_status status = looks ? start_sent(&starting, options, stored, &accepted, reterr)
                                : watch_publish_and_wait(&starting.watch, &starting.letter, stored,
                                                         FIRST_LOOK_PAUSE_MS, reterr);
    if (status == THOLE_OK)
        status = await_end(&starting.watch, FIRST_LOOK_PAUSE_MS, until, ret_outcome, reterr);
    starting_close(&starting);
    return status;
}

thole_status thole_client_run(thole_client *client, thole_slice instance, thole_slice orchestration,
                              thole_slice input, uint64_t wait_ms, thole_outcome *ret_outcome,
                              thole_error *reterr)
{
    return thole_client_run_with(client, instance, orchestration, input, NULL, wait_ms, ret_outcome, reterr);
}
