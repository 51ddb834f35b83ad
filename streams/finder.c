#include "finder.h"
#include "json.h"
#include "link.h"
#include "memory.h"
#include "reader.h"
#include "subject.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    FINDER_API_BYTES = 256,
    FINDER_REQUEST_BYTES = SUBJECT_BYTES_MAX + 64,
    FINDER_TEXT_MAX = 64 * 1024 * 1024
};

/* An answer, as it came. */
struct finder_place {
    enum request_result result;
    uint32_t err_code;
    struct buf text, subject, body;
};

struct finder {
    const char *stream;
    struct requests *requests;
    struct finder_place places[FINDER_QUESTIONS_MAX]; /* the round's; the connection's thread writes text */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t missing; /* answers of the round; under the lock */
};

static void finder_on_done(void *arg, const struct request_done *done)
{
    struct finder *const finder = arg;
    assert(done->token < FINDER_QUESTIONS_MAX);
    struct finder_place *const place = &finder->places[done->token];
    place->result = done->result;
    place->err_code = done->err_code;
    if (done->result == REQUEST_ANSWERED)
        buf_append(&place->text, done->body.ptr, done->body.len);
    pthread_mutex_lock(&finder->lock);
    assert(finder->missing > 0);
    finder->missing--;
    pthread_cond_signal(&finder->changed);
    pthread_mutex_unlock(&finder->lock);
}

thole_status finder_open(struct connection *connection, const char *stream, struct finder **ret,
                         thole_error *reterr)
{
    struct finder *const finder = memory_new(sizeof *finder);
    *finder = (struct finder){.stream = stream};
    pthread_mutex_init(&finder->lock, NULL);
    pthread_cond_init(&finder->changed, NULL);
    for (size_t i = 0; i < FINDER_QUESTIONS_MAX; i++) {
        buf_init(&finder->places[i].text, FINDER_TEXT_MAX);
        buf_init(&finder->places[i].subject, SUBJECT_BYTES_MAX);
        buf_init(&finder->places[i].body, FINDER_TEXT_MAX);
    }
    thole_status const status =
        requests_open(connection, FINDER_QUESTIONS_MAX, connection_request_timeout_ms(connection),
                      finder_on_done, finder, &finder->requests, reterr);
    *ret = finder;
    if (status != THOLE_OK) {
        finder_close(finder);
        *ret = NULL;
    }
    return status;
}

void finder_close(struct finder *finder)
{
    if (finder == NULL)
        return;
    requests_close(finder->requests);
    for (size_t i = 0; i < FINDER_QUESTIONS_MAX; i++) {
        buf_release(&finder->places[i].text);
        buf_release(&finder->places[i].subject);
        buf_release(&finder->places[i].body);
    }
    pthread_cond_destroy(&finder->changed);
    pthread_mutex_destroy(&finder->lock);
    free(finder);
}

static thole_status finder_send(struct finder *finder, const struct finder_question *question, uint64_t token,
                                thole_error *reterr)
{
    char api[FINDER_API_BYTES];
    struct buf request;
    struct json json;
    buf_init(&request, FINDER_REQUEST_BYTES);
    json_to_buf(&json, &request);
    json_object(&json);
    if (question->from > 0)
        json_member_number(&json, "seq", question->from);
    json_member(&json, question->from > 0 ? "next_by_subj" : "last_by_subj", question->subject);
    json_end(&json);
    (void)snprintf(api, sizeof api, "$JS.API.STREAM.MSG.GET.%s", finder->stream);
    thole_status status = buf_status(&request);
    if (status == THOLE_OK)
        status = requests_send(finder->requests, api, buf_bytes(&request), token, reterr);
    else
        status = thole_fail(reterr, status, "subject is too long");
    buf_release(&request);
    return status;
}

static void finder_wait(struct finder *finder)
{
    pthread_mutex_lock(&finder->lock);
    while (finder->missing > 0)
        pthread_cond_wait(&finder->changed, &finder->lock);
    pthread_mutex_unlock(&finder->lock);
}

static thole_status finder_read(struct finder *finder, struct finder_place *place, struct finder_answer *ret,
                                thole_error *reterr)
{
    *ret = (struct finder_answer){.sequence = 0};
    if (place->result != REQUEST_ANSWERED)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "read of stream %s: %s", finder->stream,
                          place->result == REQUEST_UNKNOWN ? "nats-server did not answer in time"
                                                           : request_reason(place->result, place->err_code));
    thole_slice const text = buf_bytes(&place->text);
    THOLE_TRY(stream_get_answer(text, &ret->sequence, &place->body, reterr));
    if (ret->sequence > 0)
        THOLE_TRY(stream_get_subject(text, &place->subject, reterr));
    ret->subject = buf_bytes(&place->subject);
    ret->body = buf_bytes(&place->body);
    return THOLE_OK;
}

thole_status finder_ask(struct finder *finder, const struct finder_question *questions, size_t n,
                        struct finder_answer *ret, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    size_t sent = 0;
    assert(n > 0 && n <= FINDER_QUESTIONS_MAX && finder->missing == 0);
    finder->missing = n;
    for (size_t i = 0; i < n; i++) {
        buf_clear(&finder->places[i].text);
        buf_clear(&finder->places[i].subject);
        buf_clear(&finder->places[i].body);
    }
    while (sent < n && status == THOLE_OK) {
        status = finder_send(finder, &questions[sent], sent, reterr);
        sent += status == THOLE_OK;
    }
    pthread_mutex_lock(&finder->lock);
    finder->missing -= n - sent; /* nothing comes for these */
    pthread_mutex_unlock(&finder->lock);
    finder_wait(finder);
    for (size_t i = 0; i < n && status == THOLE_OK; i++)
        status = finder_read(finder, &finder->places[i], &ret[i], reterr);
    return status;
}
