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

void place_release(struct place *place)
{
    buf_release(&place->stream);
    buf_release(&place->subject);
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

bool turn_has_request(const struct turn *turn, thole_slice request)
{
    for (size_t i = 0; i < turn->events_len; i++)
        if (turn->events[i].request_id.len > 0 && thole_slice_equal(turn->events[i].request_id, request))
            return true;
    return false;
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
        status = stream_last_by_subject(client->connection, buf_cstr(&place.stream), buf_cstr(&place.subject),
                                        &ret->opened, &body, reterr);
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

static thole_status take_deletion(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
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
        status = stream_last_by_subject(client->connection, buf_cstr(&place.stream), buf_cstr(&place.subject),
                                        &last, NULL, reterr);
    if (status == THOLE_OK && last > 0)
        status = owner_read(client, instance, &deletions.owner, reterr);
    if (status == THOLE_OK && last > 0)
        status = stream_walk(client->connection, buf_cstr(&place.stream), buf_cstr(&place.subject), 1, last,
                             take_deletion, &deletions, reterr);
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

static thole_status take_first(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct first *first = arg;
    (void)subject;
    assert(first->sequence == 0 && sequence > 0);
    first->sequence = sequence;
    first->decoded = history_decode(body, first->instance, first->arena, &first->record, first->reterr);
    return THOLE_CANCELLED; /* one is enough */
}

thole_status history_request(struct thole_client *client, thole_slice instance, struct arena *arena,
                             uint64_t *ret_sequence, thole_slice *ret_request, thole_error *reterr)
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
        status = stream_walk(client->connection, buf_cstr(&place.stream), buf_cstr(&place.subject),
                             life.deleted + 1, UINT64_MAX, take_first, &first, reterr);
    place_release(&place);
    if (first.sequence > 0)
        status = first.decoded;
    if (status == THOLE_OK) {
        *ret_sequence = first.sequence;
        *ret_request = turn_request(&first.record.turn);
    }
    return status;
}

struct search {
    thole_slice instance, request;
    bool found;
};

static thole_status search_record(void *arg, uint64_t sequence, thole_slice subject, thole_slice body)
{
    struct search *search = arg;
    struct record record;
    struct arena arena;
    (void)sequence;
    (void)subject;
    arena_init(&arena, CLIENT_ARENA_MAX);
    if (history_decode(body, search->instance, &arena, &record, NULL) == THOLE_OK)
        search->found = turn_has_request(&record.turn, search->request);
    arena_release(&arena);
    return search->found ? THOLE_CANCELLED : THOLE_OK;
}

thole_status history_has_request(struct thole_client *client, thole_slice instance, thole_slice request,
                                 bool *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct search search = {.instance = instance, .request = request};
    struct life life;
    THOLE_TRY(life_read(client, instance, &life, reterr));
    thole_status status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = stream_walk(client->connection, buf_cstr(&place.stream), buf_cstr(&place.subject),
                             life.deleted + 1, UINT64_MAX, search_record, &search, reterr);
    place_release(&place);
    *ret = search.found;
    return search.found ? THOLE_OK : status;
}
