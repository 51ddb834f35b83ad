/* history: the whole of it, in order, without the records that do not count. */
#include "client_restored.h"
#include "history_linked.h"
#include "memory.h"
#include "pending_start.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { HELD_MAX = 100000 }; /* records whose fate is open: more than any window of appends */

/*
 * A record may be void: written by an engine after a newer one had opened the partition. The newer one writes
 * the same turn again under its higher epoch, or removes it. So records are held until later ones prove that
 * they count: a later record of the same epoch has the number of records that its writer knew to be
 * acknowledged, and a newer epoch begins exactly where the records that count end.
 */
#define NUMBER(n) ((unsigned long long)(n))

struct held {
    struct held *next;
    struct arena arena;
    struct record record;
    thole_slice bytes; /* of the record, if they are asked for */
    uint64_t sequence;
};
struct reading {
    thole_slice instance;
    uint64_t execution; /* only this one; 0 = all */
    uint64_t behind;    /* sequence of the last record that was read before; 0 = begin with the first */
    struct held *first, **last;
    size_t len;
    uint64_t epoch;               /* the highest seen */
    uint64_t emitted, emitted_to; /* how many records, and the last one's sequence */
    struct {                      /* the last one's turn */
        uint64_t execution, number;
        bool more, ended;
    } turn;
    thole_history_fn *each;        /* events, or */
    client_record_fn *each_record; /* records as they are stored */
    void *arg;
    thole_error *reterr;
};

static void held_destroy(struct held *held)
{
    arena_release(&held->arena);
    free(held);
}

static bool turn_is_before(const struct turn *a, const struct turn *b)
{
    return a->execution != b->execution ? a->execution < b->execution : a->number < b->number;
}

static bool is_proven(const struct record *held, const struct record *later)
{
    if (held->epoch == later->epoch)
        return held->n <= later->committed;
    return held->epoch < later->epoch && turn_is_before(&held->turn, &later->turn);
}

static bool is_failure(enum event_kind kind)
{
    return kind == EVENT_FAILED || kind == EVENT_ACTIVITY_FAILED || kind == EVENT_ACTIVITY_TRY_FAILED ||
           kind == EVENT_CHILD_FAILED;
}

static bool is_cancellation(enum event_kind kind)
{
    return kind == EVENT_ACTIVITY_CANCELLED || kind == EVENT_TIMER_CANCELLED ||
           kind == EVENT_EVENT_AWAIT_CANCELLED || kind == EVENT_CHILD_CANCELLED;
}

thole_history_event history_event_of(uint64_t sequence, const struct turn *turn, const struct event *event)
{
    static const struct event_source unknown;
    const struct event_source *const source = event->source == NULL ? &unknown : event->source;
    const struct actor *const actor = &source->actor;
    const struct activity_place *const place = &source->place;
    return (thole_history_event){
        .sequence = sequence,
        .execution = turn->execution,
        .turn = turn->number,
        .id = event->id,
        .ref = event->ref,
        .time_ms = turn->time_ms,
        .due_ms = event->kind == EVENT_STARTED || event->kind == EVENT_HISTORY_PRUNED ? 0 : event->due_ms,
        .pruned_before = event->kind == EVENT_HISTORY_PRUNED ? event->before : 0,
        .kind = event_kind_name(event->kind),
        .name = event->name,
        .data = event->data,
        .try_number = event->try_number,
        .version = event->version,
        .status = is_failure(event->kind) ? (thole_status)event->code : THOLE_OK,
        .cause = is_cancellation(event->kind) ? thole_cancel_kind_name((thole_cancel_kind)event->code) : NULL,
        .error_type = event->error_type,
        .queue = event->queue,
        .instance = event->kind == EVENT_STARTED ? event->parent.instance : event->target,
        .request_id = event->request_id,
        .actor = actor->name,
        .actor_authenticated = actor->authenticated,
        .client = actor->client,
        .traceparent = event->kind == EVENT_STARTED ? event->traceparent : actor->trace.parent,
        .worker = event->kind == EVENT_ACTIVITY_QUARANTINED ? event->worker : place->worker,
        .host = place->host,
        .attempt = place->attempt,
        .run_started_ms = place->started_ms,
        .run_ended_ms = place->ended_ms,
        .redacted = event->data_erased || event->details_erased || event->input_erased,
    };
}

static thole_status emit_event(struct reading *reading, const struct held *held, const struct event *event)
{
    thole_history_event const out = history_event_of(held->sequence, &held->record.turn, event);
    return reading->each(reading->arg, &out);
}

/* Turns are numbered within their execution, whose last one ends it. Executions may be pruned, those in the
 * middle too. A missing record is never left out silently; a repeated one does no harm. */
static bool client_read_follows(const struct reading *reading, const struct turn *turn)
{
    if (reading->emitted == 0)
        return reading->behind > 0 || turn->number == 1;
    if (turn->execution == reading->turn.execution)
        return turn->number <= reading->turn.number + (reading->turn.more ? 0 : 1);
    bool const ended = reading->turn.ended || reading->turn.execution == 0; /* 0: events that came early */
    return turn->number == 1 && ended && turn->execution > reading->turn.execution;
}

static thole_status check_order(const struct reading *reading, const struct held *held)
{
    const struct turn *const turn = &held->record.turn;
    if (client_read_follows(reading, turn))
        return THOLE_OK;
    if (reading->emitted == 0)
        return thole_fail(
            reading->reterr, THOLE_CORRUPT,
            "the history of \"%.*s\" has no beginning: its first record, #%llu, is turn %llu of "
            "execution %llu",
            THOLE_FMT(reading->instance), NUMBER(held->sequence), NUMBER(turn->number),
            NUMBER(turn->execution));
    return thole_fail(
        reading->reterr, THOLE_CORRUPT,
        "records of \"%.*s\" are missing between #%llu, turn %llu of execution %llu, and #%llu, "
        "turn %llu of execution %llu",
        THOLE_FMT(reading->instance), NUMBER(reading->emitted_to), NUMBER(reading->turn.number),
        NUMBER(reading->turn.execution), NUMBER(held->sequence), NUMBER(turn->number),
        NUMBER(turn->execution));
}

static void client_read_note_turn(struct reading *reading, const struct turn *turn)
{
    size_t const n = turn->events_len;
    reading->turn.execution = turn->execution;
    reading->turn.number = turn->number;
    reading->turn.more = turn->more;
    reading->turn.ended = n > 0 && event_is_terminal(turn->events[n - 1].kind);
}

/* Gives the first held record to the caller and forgets it. */
static thole_status emit_first(struct reading *reading)
{
    struct held *held = reading->first;
    assert(held != NULL && reading->len > 0 && (reading->each == NULL) != (reading->each_record == NULL));
    assert(held->sequence > reading->emitted_to); /* in the order of the stream */
    thole_status status = check_order(reading, held);
    if (reading->each_record != NULL && status == THOLE_OK)
        status = reading->each_record(reading->arg, held->sequence, held->bytes);
    for (size_t i = 0; reading->each != NULL && i < held->record.turn.events_len && status == THOLE_OK; i++)
        status = emit_event(reading, held, &held->record.turn.events[i]);
    reading->first = held->next;
    if (reading->first == NULL)
        reading->last = &reading->first;
    reading->len--;
    reading->emitted++;
    reading->emitted_to = held->sequence;
    client_read_note_turn(reading, &held->record.turn);
    held_destroy(held);
    return status;
}

/* Records that the newer epoch of @p by writes again. */
static void drop_superseded(struct reading *reading, const struct record *by)
{
    struct held **at = &reading->first;
    while (*at != NULL) {
        struct held *held = *at;
        if (held->record.epoch < by->epoch && !turn_is_before(&held->record.turn, &by->turn)) {
            *at = held->next;
            assert(reading->len > 0);
            reading->len--;
            held_destroy(held);
        } else {
            at = &held->next;
        }
    }
    reading->last = at;
}

static thole_status client_read_hold(struct reading *reading, struct held *held)
{
    if (reading->len >= HELD_MAX)
        return thole_fail(reading->reterr, THOLE_LIMIT,
                          "more than %d history records without a sign that they count", HELD_MAX);
    assert(*reading->last == NULL && held->next == NULL && held->record.epoch == reading->epoch);
    assert((reading->first == NULL) == (reading->len == 0));
    *reading->last = held;
    reading->last = &held->next;
    reading->len++;
    return THOLE_OK;
}

static thole_status client_read_take(struct reading *reading, struct held *held)
{
    if (held->record.epoch < reading->epoch) { /* a deposed writer's */
        held_destroy(held);
        return THOLE_OK;
    }
    if (held->record.epoch > reading->epoch) { /* later records of this epoch supersede no more */
        reading->epoch = held->record.epoch;
        drop_superseded(reading, &held->record);
    }
    while (reading->first != NULL && is_proven(&reading->first->record, &held->record)) {
        thole_status const status = emit_first(reading);
        if (status != THOLE_OK) {
            held_destroy(held);
            return status;
        }
    }
    thole_status const status = client_read_hold(reading, held);
    if (status != THOLE_OK)
        held_destroy(held);
    return status;
}

static thole_status client_read_on_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct reading *reading = arg;
    struct held *held = memory_new(sizeof *held);
    (void)subject;
    held->sequence = sequence;
    arena_init(&held->arena, CLIENT_ARENA_MAX);
    thole_status status =
        history_decode(body, reading->instance, &held->arena, &held->record, reading->reterr);
    if (status == THOLE_OK && held->record.kind == RECORD_DELETED) {
        held_destroy(held); /* see client_read_read_history() */
        return THOLE_OK;
    }
    if (status == THOLE_OK && reading->each_record != NULL &&
        arena_dup(&held->arena, body, &held->bytes) != THOLE_OK)
        status = thole_fail(reading->reterr, THOLE_NOMEM, "out of memory for a history record");
    if (status != THOLE_OK) {
        held_destroy(held);
        return status;
    }
    return client_read_take(reading, held);
}

/* A turn without its last part does not count yet. */
static void drop_unfinished(struct reading *reading)
{
    struct held **at = &reading->first, **begin = at, *last = NULL;
    for (; *at != NULL; at = &(*at)->next) {
        if (last != NULL && turn_is_before(&last->record.turn, &(*at)->record.turn))
            begin = at;
        last = *at;
    }
    if (last == NULL || !last->record.turn.more)
        return;
    for (struct held *held = *begin, *next; held != NULL; held = next) {
        next = held->next;
        assert(reading->len > 0);
        reading->len--;
        held_destroy(held);
    }
    *begin = NULL;
    reading->last = begin;
}

/* Records that are still held at the end count, unless the partition has a newer owner that has not reached
 * them yet.
 */
static thole_status emit_held(struct reading *reading, const struct log_rule *owner)
{
    drop_unfinished(reading);
    while (reading->first != NULL &&
           !log_rule_surely_void(owner, &reading->first->record, reading->first->sequence))
        THOLE_TRY(emit_first(reading));
    return THOLE_OK;
}

static thole_status emit_rest(struct reading *reading, struct thole_client *client)
{
    struct log_rule owner;
    if (reading->first == NULL)
        return THOLE_OK;
    THOLE_TRY(owner_read(client, reading->instance, &owner, reading->reterr));
    return emit_held(reading, &owner);
}

static thole_status no_instance(const thole_client *client, thole_slice instance, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s",
                      THOLE_FMT(instance), client->topology.ns);
}

static thole_status deleted_meanwhile(thole_slice instance, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND, "instance \"%.*s\" was deleted while its history was read",
                      THOLE_FMT(instance));
}

/* A history that is deleted while it is read may have gaps. */
static thole_status check_life(thole_client *client, thole_slice instance, const struct life *life,
                               thole_error *reterr)
{
    struct life now;
    THOLE_TRY(life_read(client, instance, &now, reterr));
    if (now.deleted == life->deleted)
        return THOLE_OK;
    return deleted_meanwhile(instance, reterr);
}

static void drop_all(struct reading *reading)
{
    while (reading->first != NULL) {
        struct held *next = reading->first->next;
        held_destroy(reading->first);
        reading->first = next;
        reading->len--;
    }
    assert(reading->len == 0);
}

static void begin_reading(struct reading *reading, const struct reading *wish, thole_error *reterr)
{
    *reading = *wish;
    reading->last = &reading->first;
    reading->reterr = reterr;
}

/* A late writer's newest record does not name those of the owner: then it is not the newest that counts. */
static bool newest_counts(const struct linked_history *history, thole_slice instance,
                          const struct log_rule *owner)
{
    struct record record;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const decodes =
        history_decode(linked_history_nth(history, 0), instance, &arena, &record, NULL) == THOLE_OK;
    bool const counts = decodes && !log_rule_surely_void(owner, &record, history->records[0].sequence);
    arena_release(&arena);
    return counts;
}

static thole_status emit_linked(struct reading *reading, const struct linked_history *history,
                                const struct log_rule *owner)
{
    thole_status status = THOLE_OK;
    for (size_t i = history->len; i > 0 && status == THOLE_OK; i--)
        status = client_read_on_record(reading, history->records[i - 1].sequence, (thole_slice){NULL, 0},
                                       linked_history_nth(history, i - 1));
    return status == THOLE_OK ? emit_held(reading, owner) : status;
}

static thole_status give_linked(const struct reading *wish, const thole_client *client,
                                const struct linked_history *history, const struct log_rule *owner,
                                uint64_t *ret_last, bool *ret_done, thole_error *reterr)
{
    struct reading reading;
    assert(history->whole && history->len > 0);
    *ret_done = newest_counts(history, wish->instance, owner);
    if (!*ret_done)
        return THOLE_OK;
    begin_reading(&reading, wish, reterr);
    thole_status status = emit_linked(&reading, history, owner);
    if (ret_last != NULL && reading.emitted > 0)
        *ret_last = reading.emitted_to;
    if (status == THOLE_OK && reading.emitted == 0)
        status = no_instance(client, wish->instance, reterr);
    drop_all(&reading);
    return status;
}

thole_status linked_history_give(struct thole_client *client, thole_slice instance,
                                 const struct linked_history *history, const struct log_rule *owner,
                                 client_record_fn *each, void *arg, bool *ret_done, thole_error *reterr)
{
    struct reading const wish = {.instance = instance, .each_record = each, .arg = arg};
    return give_linked(&wish, client, history, owner, NULL, ret_done, reterr);
}

/* *ret_done false: nothing was given, and it is to be read otherwise. */
static thole_status read_linked(thole_client *client, const struct reading *wish, struct life *ret_life,
                                uint64_t *ret_last, bool *ret_done, thole_error *reterr)
{
    struct linked_history history;
    struct log_rule owner;
    *ret_done = false;
    if (wish->execution > 0 || wish->behind > 0)
        return THOLE_OK;
    thole_status status = linked_history_read(client, wish->instance, &history, reterr);
    bool const whole = status == THOLE_OK && history.whole;
    if (whole)
        status = owner_read(client, wish->instance, &owner, reterr);
    if (whole && status == THOLE_OK) {
        *ret_life = history.life;
        status = give_linked(wish, client, &history, &owner, ret_last, ret_done, reterr);
    }
    linked_history_release(&history);
    return status;
}

/* *ret_last (may be NULL): sequence of the last record that was given. *ret_life: what the log says of the
 * id. */
static thole_status client_read_read_log(thole_client *client, const struct reading *wish,
                                         struct life *ret_life, uint64_t *ret_last, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct reading reading;
    struct life life;
    thole_slice const instance = wish->instance;
    bool done;
    thole_status status = read_linked(client, wish, ret_life, ret_last, &done, reterr);
    if (status != THOLE_OK || done)
        return status;
    begin_reading(&reading, wish, reterr);
    THOLE_TRY(life_read(client, instance, &life, reterr));
    *ret_life = life;
    if (reading.behind > 0 && life.deleted > reading.behind)
        return deleted_meanwhile(instance, reterr);
    status = reading.execution == 0 ? place_history(client, instance, &place, reterr)
                                    : place_execution(client, instance, reading.execution, &place, reterr);
    if (status == THOLE_OK)
        status =
            place_walk(client, &place, (life.deleted > reading.behind ? life.deleted : reading.behind) + 1,
                       UINT64_MAX, client_read_on_record, &reading, reterr);
    if (status == THOLE_OK)
        status = check_life(client, instance, &life, reterr);
    if (status == THOLE_OK)
        status = emit_rest(&reading, client);
    if (status == THOLE_OK && reading.emitted == 0 && reading.behind == 0)
        status = no_instance(client, instance, reterr);
    if (ret_last != NULL && reading.emitted > 0)
        *ret_last = reading.emitted_to;
    drop_all(&reading);
    place_release(&place);
    return status;
}

static thole_status client_read_on_restored(void *arg, uint64_t sequence, thole_slice bytes)
{
    const struct reading *reading = arg;
    struct record record;
    struct arena arena;
    if (sequence <= reading->behind)
        return THOLE_OK;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const other = reading->execution > 0 &&
                       history_decode(bytes, reading->instance, &arena, &record, NULL) == THOLE_OK &&
                       record.turn.execution != reading->execution;
    arena_release(&arena);
    return other ? THOLE_OK : client_read_on_record(arg, sequence, (thole_slice){NULL, 0}, bytes);
}

/* All of them count: an archive has no others. THOLE_NOT_FOUND: nothing was restored. */
static thole_status client_read_read_restored(thole_client *client, const struct reading *wish,
                                              uint64_t *ret_last, thole_error *reterr)
{
    struct reading reading;
    begin_reading(&reading, wish, reterr);
    thole_status status =
        client_restored_records(client, reading.instance, client_read_on_restored, &reading, reterr);
    while (status == THOLE_OK && reading.first != NULL)
        status = emit_first(&reading);
    if (ret_last != NULL && reading.emitted > 0)
        *ret_last = reading.emitted_to;
    drop_all(&reading);
    return status;
}

/* Of the log; of an id that was deleted from it what was restored of it. */
static thole_status client_read_read_history(thole_client *client, const struct reading *wish,
                                             uint64_t *ret_last, thole_error *reterr)
{
    struct life life = {.deleted = 0};
    thole_error restored = {.status = THOLE_OK};
    enum absence absence = ABSENCE_NONE;
    THOLE_TRY(client_check_id(wish->instance, reterr));
    thole_status status = client_read_read_log(client, wish, &life, ret_last, reterr);
    if (status == THOLE_NOT_FOUND && wish->each != NULL && wish->behind == 0) {
        status = absence_explain(client, wish->instance, &absence, reterr);
        if (status == THOLE_OK && absence == ABSENCE_OVER)
            status = client_read_read_log(client, wish, &life, ret_last, reterr);
    }
    bool deleted = life.deleted > 0;
    if (status != THOLE_NOT_FOUND)
        return status;
    if (!deleted && deletions_gone(client, wish->instance, &deleted, NULL) != THOLE_OK)
        deleted = false;
    if (!deleted)
        return status;
    thole_status const other = client_read_read_restored(client, wish, ret_last, &restored);
    if (other == THOLE_NOT_FOUND || other == THOLE_DENIED)
        return status;
    if (other != THOLE_OK && reterr != NULL && restored.text[0] != '\0')
        *reterr = restored;
    return other;
}

thole_status thole_client_history(thole_client *client, thole_slice instance, thole_history_fn *each,
                                  void *arg, thole_error *reterr)
{
    struct reading const wish = {.instance = instance, .each = each, .arg = arg};
    return client_read_read_history(client, &wish, NULL, reterr);
}

thole_status client_history_behind(struct thole_client *client, thole_slice instance, uint64_t *last,
                                   thole_history_fn *each, void *arg, thole_error *reterr)
{
    struct reading const wish = {.instance = instance, .behind = *last, .each = each, .arg = arg};
    return client_read_read_history(client, &wish, last, reterr);
}

thole_status client_history_records(struct thole_client *client, thole_slice instance, client_record_fn *each,
                                    void *arg, thole_error *reterr)
{
    struct reading const wish = {.instance = instance, .each_record = each, .arg = arg};
    return client_read_read_history(client, &wish, NULL, reterr);
}

thole_status client_execution_records(struct thole_client *client, thole_slice instance, uint64_t execution,
                                      client_record_fn *each, void *arg, thole_error *reterr)
{
    struct reading const wish = {
        .instance = instance, .execution = execution, .each_record = each, .arg = arg};
    return client_read_read_history(client, &wish, NULL, reterr);
}

thole_status history_latest(struct thole_client *client, thole_slice instance, uint64_t *ret_execution,
                            bool *ret_deleted, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct record record = {.kind = RECORD_UNKNOWN};
    struct arena arena;
    struct buf body;
    uint64_t sequence = 0;
    arena_init(&arena, CLIENT_ARENA_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_last(client, &place, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence > 0)
        status = history_decode(buf_bytes(&body), instance, &arena, &record, reterr);
    *ret_execution = status == THOLE_OK && record.kind == RECORD_TURN ? record.turn.execution : 0;
    *ret_deleted = status == THOLE_OK && record.kind == RECORD_DELETED;
    arena_release(&arena);
    buf_release(&body);
    place_release(&place);
    return status;
}
