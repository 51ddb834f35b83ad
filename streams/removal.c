/* Removal of messages, many at a time, since each takes a round trip. */
#include "api.h"
#include "link.h"
#include "locked.h"
#include "reader.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { WINDOW_MAX = 256, REMOVAL_API_BYTES = 256 };

struct removal {
    const char *stream;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t in_flight;
    struct buf unclear;  /* sequences for which the server's answer may mean that they do not exist */
    thole_status status; /* the first failure */
    thole_error err;
};

/* Under the lock. */
static void removal_check(struct removal *removal, const struct request_done *done)
{
    uint32_t code = 0;
    thole_error err = {0};
    assert(is_locked(&removal->lock) && removal->in_flight > 0);
    thole_status status = THOLE_UNAVAILABLE;
    if (done->result == REQUEST_ANSWERED)
        status = api_judge(done->body, "STREAM.MSG.DELETE", removal->stream, &code, &err);
    else
        (void)thole_fail(&err, status, "stream %s did not say in time that a message is removed",
                         removal->stream);
    if (code == API_DELETE_FAILED)
        buf_append(&removal->unclear, &done->token, sizeof done->token);
    else if (status != THOLE_OK && code != API_SEQUENCE_NOT_FOUND && code != API_MESSAGE_NOT_FOUND &&
             removal->status == THOLE_OK) {
        removal->status = status;
        removal->err = err;
    }
}

static void removal_on_done(void *arg, const struct request_done *done)
{
    struct removal *removal = arg;
    pthread_mutex_lock(&removal->lock);
    removal_check(removal, done);
    removal->in_flight--;
    pthread_cond_signal(&removal->changed);
    pthread_mutex_unlock(&removal->lock);
}

/* Until fewer than @p n are in flight. */
static bool wait_for_room(struct removal *removal, size_t n)
{
    pthread_mutex_lock(&removal->lock);
    assert(n > 0 && removal->in_flight <= WINDOW_MAX);
    while (removal->in_flight >= n)
        pthread_cond_wait(&removal->changed, &removal->lock);
    bool const well = removal->status == THOLE_OK;
    pthread_mutex_unlock(&removal->lock);
    return well;
}

thole_status stream_delete_send(struct requests *requests, const char *stream, uint64_t sequence,
                                uint64_t token, thole_error *reterr)
{
    struct api_body body;
    char api[REMOVAL_API_BYTES];
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.DELETE.%s", stream);
    return requests_send(requests, api, api_body_delete(&body, sequence), token, reterr);
}

thole_status stream_delete_tell(struct connection *connection, const char *stream, uint64_t sequence,
                                thole_error *reterr)
{
    struct api_body body;
    char api[REMOVAL_API_BYTES];
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.DELETE.%s", stream);
    return connection_publish(connection, api, NULL, 0, api_body_delete(&body, sequence), reterr);
}

thole_status stream_delete_answer(thole_slice answer, const char *stream, bool *ret_was_there,
                                  thole_error *reterr)
{
    uint32_t code = 0;
    thole_status const status = api_judge(answer, "STREAM.MSG.DELETE", stream, &code, reterr);
    *ret_was_there = status == THOLE_OK;
    if (code == API_SEQUENCE_NOT_FOUND || code == API_MESSAGE_NOT_FOUND || code == API_DELETE_FAILED)
        return THOLE_OK;
    return status;
}

static thole_status send_one(struct removal *removal, struct requests *requests, uint64_t sequence,
                             thole_error *reterr)
{
    pthread_mutex_lock(&removal->lock);
    removal->in_flight++;
    pthread_mutex_unlock(&removal->lock);
    thole_status const status = stream_delete_send(requests, removal->stream, sequence, sequence, reterr);
    if (status == THOLE_OK)
        return THOLE_OK;
    pthread_mutex_lock(&removal->lock);
    assert(removal->in_flight > 0);
    removal->in_flight--;
    pthread_mutex_unlock(&removal->lock);
    return status;
}

static thole_status removal_send_all(struct removal *removal, struct requests *requests,
                                     const uint64_t *sequences, size_t n, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < n && status == THOLE_OK && wait_for_room(removal, WINDOW_MAX); i++)
        status = send_one(removal, requests, sequences[i], reterr);
    bool const well = wait_for_room(removal, 1);
    if (status == THOLE_OK && !well)
        status = thole_fail(reterr, removal->status, "%s", removal->err.text);
    return status;
}

static thole_status delete_unclear(struct connection *connection, const struct removal *removal,
                                   thole_error *reterr)
{
    uint64_t sequence;
    thole_status status = buf_status(&removal->unclear);
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "no memory for the sequences that are to be removed again");
    for (size_t at = 0; at < removal->unclear.len && status == THOLE_OK; at += sizeof sequence) {
        assert(removal->unclear.len - at >= sizeof sequence);
        memcpy(&sequence, removal->unclear.ptr + at, sizeof sequence);
        status = stream_delete(connection, removal->stream, sequence, reterr);
    }
    return status;
}

thole_status stream_delete_all(struct connection *connection, const char *stream, const uint64_t *sequences,
                               size_t n, thole_error *reterr)
{
    struct removal removal = {.stream = stream};
    struct requests *requests = NULL;
    if (n <= 2) { /* single calls cost less than a window */
        for (size_t i = 0; i < n; i++)
            THOLE_TRY(stream_delete(connection, stream, sequences[i], reterr));
        return THOLE_OK;
    }
    buf_init(&removal.unclear, n * sizeof *sequences);
    pthread_mutex_init(&removal.lock, NULL);
    pthread_cond_init(&removal.changed, NULL);
    thole_status status = requests_open(connection, 2 * WINDOW_MAX, connection_request_timeout_ms(connection),
                                        removal_on_done, &removal, &requests, reterr);
    if (status == THOLE_OK)
        status = removal_send_all(&removal, requests, sequences, n, reterr);
    requests_close(requests);
    assert(removal.in_flight == 0); /* each has been answered, or was not sent */
    if (status == THOLE_OK)
        status = delete_unclear(connection, &removal, reterr);
    pthread_cond_destroy(&removal.changed);
    pthread_mutex_destroy(&removal.lock);
    buf_release(&removal.unclear);
    return status;
}
