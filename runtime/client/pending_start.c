#include "pending_start.h"
#include "proto_json.h"
#include <assert.h>
#include <string.h>

enum { NANOS_PER_MS = 1000000, STARTS_MAX = 1000 };

/* The inbox position according to the log. */
struct taken {
    struct position position; /* in the arena; zeroed: not known */
};

/* The position of the last record: it has what all before it have. A part of a turn has none. */
static thole_status taken_read(struct thole_client *client, thole_slice instance, struct arena *arena,
                               struct taken *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct stored_message last;
    struct record record;
    struct buf body;
    *ret = (struct taken){.position = {.floor = 0}};
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_status(
            stream_find(client->connection, buf_cstr(&place.stream), "thole.*.>", 0, &last, &body, reterr),
            buf_cstr(&place.stream), reterr);
    if (status == THOLE_OK && last.sequence > 0 &&
        record_decode(buf_bytes(&body), arena, &record, NULL) == THOLE_OK)
        ret->position = record.position;
    buf_release(&body);
    place_release(&place);
    return status;
}

/* A message that was stored later than the highest one that was read, but has a lower sequence, is of an
 * inbox that was made again. */
static bool is_taken(const struct taken *taken, const struct stored_message *message)
{
    const struct position *const position = &taken->position;
    bool const older = position->seen_ns == 0 || message->sequence > position->seen ||
                       message->stored_ns <= position->seen_ns;
    return position_has(position, message->sequence) && older;
}

/* Whether an engine would take it for a start of that instance. */
static bool is_start(thole_slice body, thole_slice instance, struct arena *arena, struct message *ret)
{
    struct buf converted = {.ptr = NULL};
    thole_slice const bytes = proto_json_inbox_body(body, &converted);
    bool const is = message_decode(bytes, arena, ret, NULL) == THOLE_OK && ret->kind == MESSAGE_START &&
                    thole_slice_equal(ret->instance, instance);
    buf_release(&converted);
    return is;
}

struct searched { /* the messages for an instance with one kind of subject */
    struct thole_client *client;
    thole_slice instance;
    const char *stream, *subject;
    struct arena *arena;
    thole_error *reterr;
};

/* Kinds of subjects, one after the other until one is enough. */
struct searching {
    thole_status (*subject)(struct buf *to, const char *ns, uint32_t p, size_t which, thole_slice instance,
                            thole_error *reterr);
    size_t subjects;
    thole_status (*look)(const struct searched *at, void *arg, bool *done);
    void *arg;
};

static thole_status search_inbox(struct thole_client *client, thole_slice instance, struct arena *arena,
                                 const struct searching *searching, thole_error *reterr)
{
    struct buf stream, subject;
    bool done = false;
    uint32_t const p = subject_partition(instance, client->topology.partitions);
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, client->topology.ns, "IN", p, reterr);
    for (size_t which = 0; which < searching->subjects && status == THOLE_OK && !done; which++) {
        status = searching->subject(&subject, client->topology.ns, p, which, instance, reterr);
        struct searched const at = {client, instance, buf_cstr(&stream), buf_cstr(&subject), arena, reterr};
        if (status == THOLE_OK)
            status = searching->look(&at, searching->arg, &done);
    }
    buf_release(&stream);
    buf_release(&subject);
    return status;
}

static thole_status searched_find(const struct searched *at, uint64_t from, struct stored_message *ret,
                                  struct buf *ret_body)
{
    return place_status(
        stream_find(at->client->connection, at->stream, at->subject, from, ret, ret_body, at->reterr),
        at->stream, at->reterr);
}

/* The first one that is not taken, if it stands before what was found. */
static thole_status find_first(const struct searched *at, const struct taken *taken,
                               struct pending_start *ret)
{
    struct stored_message found;
    struct message message;
    struct buf body;
    uint64_t from = taken->position.floor + 1;
    thole_status status = THOLE_OK;
    buf_init(&body, MESSAGE_BYTES_MAX);
    for (int i = 0; i < STARTS_MAX; i++, from = found.sequence + 1) {
        status = searched_find(at, from, &found, &body);
        if (status != THOLE_OK || found.sequence == 0 || (ret->is && ret->sequence < found.sequence))
            break;
        if (is_taken(taken, &found) || !is_start(buf_bytes(&body), at->instance, at->arena, &message))
            continue;
        *ret = (struct pending_start){.is = true,
                                      .message = message,
                                      .sequence = found.sequence,
                                      .stored_ms = found.stored_ns / NANOS_PER_MS,
                                      .ahead = position_open(&taken->position, found.sequence - 1)};
        break;
    }
    buf_release(&body);
    return status;
}

/* An inbox that was made again has them below the position. */
static struct taken taken_of(const struct taken *taken, const struct stored_message *last)
{
    bool const again = last->sequence <= taken->position.floor && !is_taken(taken, last);
    return again ? (struct taken){.position = {.floor = 0}} : *taken;
}

struct start_search {
    struct taken taken;
    bool known; /* taken is read */
    struct pending_start *found;
};

static thole_status pending_look_for_start(const struct searched *at, void *arg, bool *done)
{
    struct start_search *const search = arg;
    struct stored_message last;
    (void)done; /* the first one of any subject is wanted */
    THOLE_TRY(searched_find(at, 0, &last, NULL));
    if (last.sequence == 0)
        return THOLE_OK;
    if (!search->known)
        THOLE_TRY(taken_read(at->client, at->instance, at->arena, &search->taken, at->reterr));
    search->known = true;
    if (is_taken(&search->taken, &last))
        return THOLE_OK;
    struct taken const of = taken_of(&search->taken, &last);
    return find_first(at, &of, search->found);
}

static thole_status search_starts(struct thole_client *client, thole_slice instance, struct arena *arena,
                                  struct pending_start *ret, thole_error *reterr)
{
    struct start_search search = {.found = ret};
    struct searching const searching = {subject_starts, SUBJECT_STARTS, pending_look_for_start, &search};
    return search_inbox(client, instance, arena, &searching, reterr);
}

/* Each is taken in the order of the inbox, so the last one tells. */
static thole_status look_for_request(const struct searched *at, void *arg, bool *done)
{
    struct taken taken = {.position = {.floor = 0}};
    struct stored_message last;
    THOLE_TRY(searched_find(at, 0, &last, NULL));
    if (last.sequence == 0)
        return THOLE_OK;
    THOLE_TRY(taken_read(at->client, at->instance, at->arena, &taken, at->reterr));
    *done = *(bool *)arg = !is_taken(&taken, &last);
    return THOLE_OK;
}

static thole_status search_requests(struct thole_client *client, thole_slice instance, struct arena *arena,
                                    bool *ret, thole_error *reterr)
{
    struct searching const searching = {subject_controls, SUBJECT_CONTROLS, look_for_request, ret};
    return search_inbox(client, instance, arena, &searching, reterr);
}

thole_status pending_request_find(struct thole_client *client, thole_slice instance, bool *ret,
                                  thole_error *reterr)
{
    struct arena arena;
    *ret = false;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status const status = atomic_load(&client->inbox_denied)
                                    ? THOLE_DENIED
                                    : search_requests(client, instance, &arena, ret, reterr);
    arena_release(&arena);
    if (status != THOLE_DENIED)
        return status;
    atomic_store(&client->inbox_denied, true);
    *ret = true;
    return THOLE_OK;
}

struct deletion_search {
    uint64_t start; /* after this sequence */
    bool found;
};

static thole_status look_for_deletion(const struct searched *at, void *arg, bool *done)
{
    struct deletion_search *const search = arg;
    struct stored_message found;
    THOLE_TRY(searched_find(at, search->start + 1, &found, NULL));
    *done = search->found = found.sequence > 0;
    return THOLE_OK;
}

thole_status pending_deletion_find(struct thole_client *client, thole_slice instance, uint64_t start,
                                   bool *ret, thole_error *reterr)
{
    struct deletion_search search = {.start = start};
    struct searching const searching = {subject_deletions, SUBJECT_DELETIONS, look_for_deletion, &search};
    thole_status const status = search_inbox(client, instance, NULL, &searching, reterr);
    *ret = search.found;
    return status;
}

/* The start may have been taken between the look at the history and the one at the inbox. A start that has
 * begun an instance begins none again when that is deleted. */
static thole_status pending_start_look_again(struct thole_client *client, thole_slice instance,
                                             struct arena *arena, struct pending_start *ret,
                                             thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    struct stored_message last = {0};
    struct record record = {.kind = RECORD_UNKNOWN};
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = place_find(client, &place, 0, &last, &body, reterr);
    if (status == THOLE_OK && last.sequence > 0 &&
        history_decode(buf_bytes(&body), instance, arena, &record, NULL) != THOLE_OK)
        ret->begun = true; /* the reader of the history reports the error */
    ret->begun = ret->begun || (record.kind == RECORD_TURN && record.turn.execution > 0);
    if (record.kind == RECORD_DELETED && ret->is && ret->message.request_id.len > 0 &&
        thole_slice_equal(ret->message.request_id, record.deletion.started_by))
        ret->is = false;
    ret->is = ret->is && !ret->begun;
    buf_release(&body);
    place_release(&place);
    return status;
}

thole_status pending_start_find(struct thole_client *client, thole_slice instance, struct arena *arena,
                                struct pending_start *ret, thole_error *reterr)
{
    memset(ret, 0, sizeof *ret);
    bool const may = !atomic_load(&client->inbox_denied);
    thole_status status = may ? search_starts(client, instance, arena, ret, reterr) : THOLE_DENIED;
    if (status == THOLE_DENIED) { /* the user's permissions are older than this look */
        atomic_store(&client->inbox_denied, true);
        *ret = (struct pending_start){.unknown = true};
        status = THOLE_OK;
    }
    return status == THOLE_OK ? pending_start_look_again(client, instance, arena, ret, reterr) : status;
}

thole_status pending_start_absent(const struct thole_client *client, thole_slice instance,
                                  const struct pending_start *start, thole_error *reterr)
{
    return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\" in namespace %s%s",
                      THOLE_FMT(instance), client->topology.ns,
                      start->unknown
                          ? "; whether its start waits for an engine is not known, as NATS forbids "
                            "this user to read the inbox: see thole doctor --nats-permissions"
                          : "");
}

thole_status absence_explain(struct thole_client *client, thole_slice instance, enum absence *ret,
                             thole_error *reterr)
{
    struct pending_start start;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    thole_status status = pending_start_find(client, instance, &arena, &start, reterr);
    arena_release(&arena);
    THOLE_TRY(status);
    *ret = start.begun ? ABSENCE_OVER : start.is ? ABSENCE_START : ABSENCE_NONE;
    return *ret != ABSENCE_NONE ? THOLE_OK : pending_start_absent(client, instance, &start, reterr);
}
