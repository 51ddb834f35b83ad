#include "client_internal.h"
#include "message.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ---- */

static thole_status place_init(const struct thole_client *client, thole_slice instance, const char *kind,
                               struct place *ret, uint32_t *ret_partition, thole_error *reterr)
{
    buf_init(&ret->stream, STREAM_NAME_BYTES_MAX);
    buf_init(&ret->subject, SUBJECT_BYTES_MAX);
    *ret_partition = subject_partition(instance, client->topology.partitions);
    assert(*ret_partition < client->topology.partitions);
    return stream_name(&ret->stream, client->topology.ns, kind, *ret_partition, reterr);
}

thole_status place_inbox(const struct thole_client *client, thole_slice instance, const struct letter *letter,
                         struct place *ret, thole_error *reterr)
{
    uint32_t p;
    THOLE_TRY(place_init(client, instance, "IN", ret, &p, reterr));
    THOLE_TRY(subject_inbox(&ret->subject, client->topology.ns, p, thole_slice_from(letter->route.text),
                            instance, reterr));
    return subject_add_actor(&ret->subject, letter->actor, reterr);
}

thole_status place_history(const struct thole_client *client, thole_slice instance, struct place *ret,
                           thole_error *reterr)
{
    uint32_t p;
    THOLE_TRY(place_init(client, instance, "HIST", ret, &p, reterr));
    return subject_history(&ret->subject, client->topology.ns, p, instance, EXECUTIONS_ALL, reterr);
}

thole_status place_execution(const struct thole_client *client, thole_slice instance, uint64_t execution,
                             struct place *ret, thole_error *reterr)
{
    uint32_t p;
    THOLE_TRY(place_init(client, instance, "HIST", ret, &p, reterr));
    return subject_history(&ret->subject, client->topology.ns, p, instance, execution, reterr);
}

thole_status place_deletion(const struct thole_client *client, thole_slice instance, struct place *ret,
                            thole_error *reterr)
{
    uint32_t p;
    THOLE_TRY(place_init(client, instance, "HIST", ret, &p, reterr));
    return subject_history(&ret->subject, client->topology.ns, p, instance, EXECUTION_DELETED, reterr);
}

thole_status place_epoch(const struct thole_client *client, thole_slice instance, struct place *ret,
                         thole_error *reterr)
{
    uint32_t p;
    THOLE_TRY(place_init(client, instance, "HIST", ret, &p, reterr));
    return subject_control(&ret->subject, client->topology.ns, p, "epoch", reterr);
}

thole_status deletions_gone(struct thole_client *client, thole_slice instance, bool *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct record record;
    struct arena arena;
    struct buf list;
    uint64_t sequence = 0;
    uint32_t p;
    *ret = false;
    buf_init(&list, CLIENT_ARENA_MAX);
    thole_status status = place_init(client, instance, "HIST", &place, &p, reterr);
    if (status == THOLE_OK)
        status = subject_control(&place.subject, client->topology.ns, p, "folded", reterr);
    if (status == THOLE_OK)
        status = place_last(client, &place, &sequence, &list, reterr);
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (status == THOLE_OK && sequence > 0 &&
        record_decode(buf_bytes(&list), &arena, &record, NULL) == THOLE_OK)
        *ret = record.kind == RECORD_POSITION && record.folded.deleted > 0;
    arena_release(&arena);
    buf_release(&list);
    place_release(&place);
    return status;
}

void place_release(struct place *place)
{
    buf_release(&place->stream);
    buf_release(&place->subject);
}

thole_status place_status(thole_status status, const char *stream, thole_error *reterr)
{
    if (status != THOLE_NOT_FOUND)
        return status;
    return thole_fail(reterr, THOLE_UNAVAILABLE,
                      "stream %s is not there: it was lost, or this is another NATS server than before. "
                      "thole doctor says what is missing and what to do",
                      stream);
}

thole_status place_last(const struct thole_client *client, const struct place *place, uint64_t *ret_sequence,
                        struct buf *ret_body, thole_error *reterr)
{
    const char *const stream = buf_cstr(&place->stream);
    return place_status(stream_last_by_subject(client->connection, stream, buf_cstr(&place->subject),
                                               ret_sequence, ret_body, reterr),
                        stream, reterr);
}

thole_status place_find(const struct thole_client *client, const struct place *place, uint64_t from,
                        struct stored_message *ret, struct buf *ret_body, thole_error *reterr)
{
    const char *const stream = buf_cstr(&place->stream);
    return place_status(
        stream_find(client->connection, stream, buf_cstr(&place->subject), from, ret, ret_body, reterr),
        stream, reterr);
}

thole_status place_message(const struct thole_client *client, const struct place *place, uint64_t sequence,
                           bool *ret_there, struct buf *ret_body, thole_error *reterr)
{
    const char *const stream = buf_cstr(&place->stream);
    return place_status(stream_message(client->connection, stream, sequence, ret_there, ret_body, reterr),
                        stream, reterr);
}

thole_status place_walk(const struct thole_client *client, const struct place *place, uint64_t from,
                        uint64_t to, stream_read_fn *each, void *arg, thole_error *reterr)
{
    const char *const stream = buf_cstr(&place->stream);
    return place_status(
        stream_walk(client->connection, stream, buf_cstr(&place->subject), from, to, each, arg, reterr),
        stream, reterr);
}

/* ---- records ---- */

thole_status history_decode(thole_slice bytes, thole_slice instance, struct arena *arena, struct record *ret,
                            thole_error *reterr)
{
    THOLE_TRY(record_decode(bytes, arena, ret, reterr));
    bool const deletion = ret->kind == RECORD_DELETED;
    if ((ret->kind != RECORD_TURN && !deletion) ||
        !thole_slice_equal(deletion ? ret->deletion.instance : ret->turn.instance, instance))
        return thole_fail(reterr, THOLE_CORRUPT,
                          "the history subject of \"%.*s\" holds a record of something else",
                          THOLE_FMT(instance));
    return THOLE_OK;
}

const struct event *turn_end(const struct turn *turn)
{
    const struct event *last = turn->events_len == 0 ? NULL : &turn->events[turn->events_len - 1];
    bool const ends =
        !turn->more && last != NULL && event_is_terminal(last->kind) && last->kind != EVENT_CONTINUED_AS_NEW;
    return ends ? last : NULL;
}

thole_instance_status end_status(enum event_kind end)
{
    if (end == EVENT_COMPLETED)
        return THOLE_INSTANCE_COMPLETED;
    if (end == EVENT_FAILED)
        return THOLE_INSTANCE_FAILED;
    return end == EVENT_TERMINATED ? THOLE_INSTANCE_TERMINATED : THOLE_INSTANCE_CANCELLED;
}

thole_slice turn_request(const struct turn *turn)
{
    for (size_t i = 0; i < turn->events_len; i++)
        if (turn->events[i].kind == EVENT_STARTED)
            return turn->events[i].request_id;
    return (thole_slice){NULL, 0};
}

static thole_status owner_decode(thole_slice bytes, struct log_rule *ret, thole_error *reterr)
{
    struct record record;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status const status = record_decode(bytes, &arena, &record, reterr);
    if (status == THOLE_OK)
        ret->epoch = record.epoch;
    arena_release(&arena);
    return status;
}

thole_status owner_read(struct thole_client *client, thole_slice instance, struct log_rule *ret,
                        thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct buf body;
    memset(ret, 0, sizeof *ret);
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = place_epoch(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_last(client, &place, &ret->opened, &body, reterr);
    if (status == THOLE_OK && ret->opened > 0)
        status = owner_decode(buf_bytes(&body), ret, reterr);
    buf_release(&body);
    place_release(&place);
    return status;
}

/* ---- instances that had the same id, one after the other ---- */

struct deletions { /* of one id, in order; the last one that counts is kept */
    thole_slice instance;
    struct log_rule owner;
    struct life life;
    thole_error *reterr;
};

static thole_status client_history_take_deletion(void *arg, uint64_t sequence, thole_slice subject,
                                                 thole_slice body)
{
    struct deletions *deletions = arg;
    struct record record;
    struct arena arena;
    (void)subject;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status const status = history_decode(body, deletions->instance, &arena, &record, deletions->reterr);
    assert(sequence > deletions->life.deleted); /* they are read in order */
    if (status == THOLE_OK && !log_rule_surely_void(&deletions->owner, &record, sequence))
        deletions->life = (struct life){sequence, record.deletion.execution + 1};
    arena_release(&arena);
    return status;
}

/* Hardly any id has one; of those that have, hardly any has another. */
thole_status life_read(struct thole_client *client, thole_slice instance, struct life *ret,
                       thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct deletions deletions = {.instance = instance, .life = {0, 1}, .reterr = reterr};
    uint64_t last = 0;
    thole_status status = place_deletion(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_last(client, &place, &last, NULL, reterr);
    if (status == THOLE_OK && last > 0)
        status = owner_read(client, instance, &deletions.owner, reterr);
    if (status == THOLE_OK && last > 0)
        status = place_walk(client, &place, 1, last, client_history_take_deletion, &deletions, reterr);
    place_release(&place);
    *ret = deletions.life;
    return status;
}

/* ---- the first record ---- */

struct first {
    thole_slice instance;
    struct arena *arena;
    uint64_t sequence;
    struct record record;
    thole_status decoded;
    thole_error *reterr;
};

static thole_status client_history_take_first(void *arg, uint64_t sequence, thole_slice subject,
                                              thole_slice body)
{
    struct first *first = arg;
    (void)subject;
    assert(first->sequence == 0 && sequence > 0);
    first->sequence = sequence;
    first->decoded = history_decode(body, first->instance, first->arena, &first->record, first->reterr);
    return THOLE_CANCELLED; /* one is enough */
}

thole_status history_first_turn(struct thole_client *client, thole_slice instance, struct arena *arena,
                                uint64_t *ret_sequence, struct turn *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct first first = {.instance = instance, .arena = arena, .reterr = reterr};
    struct life life;
    THOLE_TRY(life_read(client, instance, &life, reterr));
    thole_status status = place_history(client, instance, &place, reterr);
    uint32_t const p = subject_partition(instance, client->topology.partitions);
    if (status == THOLE_OK) /* execution 0 is not an instance yet */
        status = subject_history(&place.subject, client->topology.ns, p, instance, life.first, reterr);
    if (status == THOLE_OK)
        status = place_walk(client, &place, life.deleted + 1, UINT64_MAX, client_history_take_first, &first,
                            reterr);
    place_release(&place);
    if (first.sequence > 0)
        status = first.decoded;
    if (status == THOLE_OK) {
        *ret_sequence = first.sequence;
        *ret = first.record.turn;
    }
    return status;
}

struct search {
    const struct message *message;
    enum repetition found;
};

static thole_status search_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct search *search = arg;
    struct record record;
    struct arena arena;
    (void)sequence;
    (void)subject;
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (history_decode(body, search->message->instance, &arena, &record, NULL) == THOLE_OK)
        search->found = repetition_in(&record.turn, search->message);
    arena_release(&arena);
    return search->found != REPETITION_NONE ? THOLE_CANCELLED : THOLE_OK;
}

static thole_status history_search(struct thole_client *client, const struct message *message, uint64_t from,
                                   enum repetition *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct search search = {.message = message};
    *ret = REPETITION_NONE;
    thole_status status = place_history(client, message->instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_walk(client, &place, from, UINT64_MAX, search_record, &search, reterr);
    place_release(&place);
    *ret = search.found;
    return search.found != REPETITION_NONE ? THOLE_OK : status;
}

thole_status history_repetition(struct thole_client *client, const struct message *message,
                                enum repetition *ret, thole_error *reterr)
{
    struct life life;
    *ret = REPETITION_NONE;
    THOLE_TRY(life_read(client, message->instance, &life, reterr));
    return history_search(client, message, life.deleted + 1, ret, reterr);
}

thole_status history_repetition_after(struct thole_client *client, const struct message *message,
                                      uint64_t *sequence, enum repetition *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct stored_message last = {0};
    uint64_t const from = *sequence + 1;
    *ret = REPETITION_NONE;
    thole_status status = place_history(client, message->instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_find(client, &place, 0, &last, NULL, reterr);
    place_release(&place);
    if (status != THOLE_OK || last.sequence < from)
        return status;
    *sequence = last.sequence;
    return history_search(client, message, from, ret, reterr);
}
