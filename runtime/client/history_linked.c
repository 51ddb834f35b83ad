#include "history_linked.h"
#include "memory.h"
#include "record_head.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { REQUEST_BYTES = SUBJECT_BYTES_MAX + 64, API_SUBJECT_BYTES = STREAM_NAME_BYTES_MAX + 32 };

enum link_step { LINK_ON, LINK_WHOLE, LINK_UNKNOWN };

thole_slice linked_history_nth(const struct linked_history *history, size_t i)
{
    assert(i < history->len);
    return (thole_slice){history->bytes.ptr + history->records[i].at, history->records[i].len};
}

static void linked_history_init(struct linked_history *history, size_t bytes_max)
{
    history->whole = false;
    history->len = 0;
    history->life = (struct life){0, 1};
    buf_init(&history->bytes, bytes_max);
}

void linked_history_release(struct linked_history *history)
{
    buf_release(&history->bytes);
    history->whole = false;
    history->len = 0;
}

/* The record is a deletion: what stands before it does not belong to the history. */
static bool linked_ends_at(struct linked_history *history, thole_slice instance, uint64_t sequence,
                           thole_slice body)
{
    struct record record;
    struct arena arena;
    arena_init(&arena, CLIENT_ARENA_MAX);
    bool const deletes =
        history_decode(body, instance, &arena, &record, NULL) == THOLE_OK && record.kind == RECORD_DELETED;
    if (deletes)
        history->life = (struct life){sequence, record.deletion.execution + 1};
    arena_release(&arena);
    return deletes;
}

/* Takes a record; LINK_ON: the one that *ret_before names is to be read. */
static enum link_step linked_take(struct linked_history *history, thole_slice instance, uint64_t sequence,
                                  thole_slice body, struct record_link *ret_before)
{
    struct record_head head;
    if (!record_head_read(body, &head))
        return LINK_UNKNOWN;
    if (head.turn == 0) /* no turn; the newest record of a history is one */
        return history->len > 0 && linked_ends_at(history, instance, sequence, body) ? LINK_WHOLE
                                                                                     : LINK_UNKNOWN;
    /* Before a turn there are as many records as its number says, or more. */
    if (head.turn > LINKED_RECORDS_MAX - history->len || head.before.sequence >= sequence)
        return LINK_UNKNOWN;
    history->records[history->len++] = (struct linked_record){sequence, history->bytes.len, body.len};
    buf_slice(&history->bytes, body);
    if (buf_status(&history->bytes) != THOLE_OK)
        return LINK_UNKNOWN;
    *ret_before = head.before;
    return head.before.sequence == 0 ? LINK_WHOLE : LINK_ON;
}

/* Whether that is the record that is named. */
static bool linked_is(const struct thole_client *client, thole_slice instance, const struct record_link *link,
                      thole_slice body)
{
    uint32_t const partition = subject_partition(instance, client->topology.partitions);
    struct record_hash const hash = record_hash_make(thole_slice_from(client->topology.ns), partition, body);
    return record_hash_equal(&hash, &link->hash);
}

/* ---- one ---- */

static thole_status linked_walk(struct thole_client *client, thole_slice instance, const struct place *place,
                                struct linked_history *history, thole_error *reterr)
{
    enum link_step step = LINK_UNKNOWN;
    struct record_link at = {.sequence = 0};
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = place_last(client, place, &at.sequence, &body, reterr);
    if (status == THOLE_OK && at.sequence > 0)
        step = linked_take(history, instance, at.sequence, buf_bytes(&body), &at);
    while (status == THOLE_OK && step == LINK_ON) {
        bool there;
        status = place_message(client, place, at.sequence, &there, &body, reterr);
        step = status == THOLE_OK && there && linked_is(client, instance, &at, buf_bytes(&body))
                   ? linked_take(history, instance, at.sequence, buf_bytes(&body), &at)
                   : LINK_UNKNOWN;
    }
    history->whole = status == THOLE_OK && step == LINK_WHOLE;
    buf_release(&body);
    return status;
}

thole_status linked_history_read(struct thole_client *client, thole_slice instance,
                                 struct linked_history *ret, thole_error *reterr)
{
    struct place place = {.stream = {.ptr = NULL}};
    linked_history_init(ret, LINKED_BYTES_MAX);
    thole_status status = place_history(client, instance, &place, reterr);
    if (status == THOLE_OK)
        status = linked_walk(client, instance, &place, ret, reterr);
    place_release(&place);
    return status;
}

/* ---- many ---- */

struct linked_many {
    struct thole_client *client;
    const thole_slice *instances;
    struct linked_history *histories;
    struct record_link *next; /* of each, what is asked for; sequence 0: its newest record */
    struct requests *window;
    struct buf request, body; /* of the thread that sends: first the caller's, then the callbacks' */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t left; /* under the lock: so many are under way */
};

static thole_status linked_send(struct linked_many *many, struct buf *request, size_t i)
{
    struct place place = {.stream = {.ptr = NULL}};
    char api[API_SUBJECT_BYTES];
    uint64_t const sequence = many->next[i].sequence;
    thole_status status = place_history(many->client, many->instances[i], &place, NULL);
    if (status == THOLE_OK && sequence > 0)
        status = stream_sequence_request(request, sequence);
    else if (status == THOLE_OK)
        status = stream_get_request(request, buf_cstr(&place.subject));
    if (status == THOLE_OK) {
        (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", buf_cstr(&place.stream));
        status = requests_send(many->window, api, buf_bytes(request), i, NULL);
    }
    place_release(&place);
    return status;
}

static void linked_leave(struct linked_many *many)
{
    pthread_mutex_lock(&many->lock);
    assert(many->left > 0);
    many->left--;
    pthread_cond_signal(&many->changed);
    pthread_mutex_unlock(&many->lock);
}

static void linked_on_done(void *arg, const struct request_done *done)
{
    struct linked_many *const many = arg;
    size_t const i = (size_t)done->token;
    struct linked_history *const history = &many->histories[i];
    struct record_link *const next = &many->next[i];
    enum link_step step = LINK_UNKNOWN;
    uint64_t sequence = 0;
    if (done->result == REQUEST_ANSWERED &&
        stream_get_answer(done->body, &sequence, &many->body, NULL) == THOLE_OK && sequence > 0 &&
        (next->sequence == 0 || (sequence == next->sequence &&
                                 linked_is(many->client, many->instances[i], next, buf_bytes(&many->body)))))
        step = linked_take(history, many->instances[i], sequence, buf_bytes(&many->body), next);
    if (step == LINK_ON && linked_send(many, &many->request, i) == THOLE_OK)
        return;
    history->whole = step == LINK_WHOLE;
    linked_leave(many);
}

static void linked_send_all(struct linked_many *many, size_t n)
{
    struct buf request;
    buf_init(&request, REQUEST_BYTES);
    many->left = n;
    connection_cork(many->client->connection);
    for (size_t i = 0; i < n; i++)
        if (linked_send(many, &request, i) != THOLE_OK)
            linked_leave(many);
    connection_uncork(many->client->connection);
    pthread_mutex_lock(&many->lock);
    while (many->left > 0)
        pthread_cond_wait(&many->changed, &many->lock);
    pthread_mutex_unlock(&many->lock);
    buf_release(&request);
}

thole_status linked_histories_read(struct thole_client *client, const thole_slice *instances, size_t n,
                                   size_t bytes_max, struct linked_history *ret, thole_error *reterr)
{
    struct linked_many many = {.client = client, .instances = instances, .histories = ret};
    assert(n > 0);
    many.next = memory_array(n, sizeof *many.next);
    buf_init(&many.request, REQUEST_BYTES);
    buf_init(&many.body, RECORD_BYTES_MAX);
    pthread_mutex_init(&many.lock, NULL);
    pthread_cond_init(&many.changed, NULL);
    for (size_t i = 0; i < n; i++)
        linked_history_init(&ret[i], bytes_max);
    thole_status const status =
        requests_open(client->connection, n, client->timeout_ms, linked_on_done, &many, &many.window, reterr);
    if (status == THOLE_OK)
        linked_send_all(&many, n);
    requests_close(many.window);
    pthread_cond_destroy(&many.changed);
    pthread_mutex_destroy(&many.lock);
    buf_release(&many.request);
    buf_release(&many.body);
    free(many.next);
    return status;
}
