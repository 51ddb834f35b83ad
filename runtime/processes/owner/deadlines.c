/*
 * Ends tries that are past their deadline, also when no worker is alive to report it: delete the row, publish
 * the timeout to the instance's inbox, commit, in the same order as a worker. So the row decides whether a
 * worker or the engine reports, and a result that is sent twice after a failure is dropped by its receiver.
 * Runs on the store's thread, which waits for the answers.
 */
#include "deadlines.h"
#include "memory.h"
#include "shard_request.h"
#include "subject.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { EXPIRED_MAX = 256, PUBLISH_TIMEOUT_MS = 3000, AGAIN_MS = 1000 };

struct deadlines {
    struct engine_host *engine;
    struct requests *publishes; /* NULL until first used */
    pthread_mutex_t lock;
    pthread_cond_t answered;
    size_t open; /* publishes not answered yet */
    bool failed; /* one of them was not stored */
};

struct deadlines *deadlines_create(struct engine_host *engine)
{
    struct deadlines *const deadlines = memory_new(sizeof *deadlines);
    deadlines->engine = engine;
    (void)pthread_mutex_init(&deadlines->lock, NULL);
    (void)pthread_cond_init(&deadlines->answered, NULL);
    return deadlines;
}

void deadlines_destroy(struct deadlines *deadlines)
{
    if (deadlines == NULL)
        return;
    requests_close(deadlines->publishes);
    (void)pthread_cond_destroy(&deadlines->answered);
    (void)pthread_mutex_destroy(&deadlines->lock);
    free(deadlines);
}

uint64_t deadlines_first(const struct batch *batch)
{
    uint64_t first_ms = UINT64_MAX;
    for (size_t i = 0; i < batch->activities_added_len; i++) {
        uint64_t const timeout_ms = batch->activities_added[i].try_timeout_ms;
        if (timeout_ms > 0 && timeout_ms < first_ms)
            first_ms = timeout_ms;
    }
    return first_ms;
}

/* Called on NATS's threads. */
static void deadlines_on_answer(void *arg, const struct request_done *done)
{
    struct deadlines *const deadlines = arg;
    (void)pthread_mutex_lock(&deadlines->lock);
    assert(deadlines->open > 0);
    deadlines->failed |= done->result != REQUEST_STORED;
    deadlines->open--;
    (void)pthread_cond_signal(&deadlines->answered);
    (void)pthread_mutex_unlock(&deadlines->lock);
}

static void deadlines_expect(struct deadlines *deadlines, bool one_more)
{
    (void)pthread_mutex_lock(&deadlines->lock);
    if (one_more) {
        deadlines->open++;
    } else { /* not sent */
        deadlines->open--;
        deadlines->failed = true;
    }
    (void)pthread_mutex_unlock(&deadlines->lock);
}

static void deadlines_publish(struct deadlines *deadlines, uint32_t p, const struct expired_try *expired)
{
    struct message const message = {.kind = MESSAGE_ACTIVITY_RESULT,
                                    .instance = expired->row.instance,
                                    .execution = expired->row.execution,
                                    .task = expired->row.activity_id,
                                    .status = THOLE_TIMEOUT,
                                    .data = THOLE_STR("timeout"),
                                    .error_type = THOLE_STR("timeout"),
                                    .try_number = expired->row.try_number,
                                    .source.place.attempt = expired->attempt,
                                    .details = expired->row.details};
    struct buf subject, body;
    thole_error err = {0};
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, MESSAGE_BYTES_MAX);
    deadlines_expect(deadlines, true);
    struct message_route const route = message_route(&message, SENDER_ENGINE);
    thole_status status = subject_inbox(&subject, deadlines->engine->topology.ns, p,
                                        thole_slice_from(route.text), expired->row.instance, &err);
    if (status == THOLE_OK)
        status = message_encode(&message, &body);
    if (status == THOLE_OK) {
        struct publish const wanted = {.subject = buf_cstr(&subject), .body = buf_bytes(&body)};
        status = requests_publish(deadlines->publishes, &wanted, 0, &err);
    }
    if (status != THOLE_OK)
        deadlines_expect(deadlines, false);
    buf_release(&subject);
    buf_release(&body);
}

/* True: all are stored. */
static bool publish_all(struct deadlines *deadlines, const struct request *request)
{
    if (deadlines->publishes == NULL &&
        requests_open(deadlines->engine->connection, EXPIRED_MAX, PUBLISH_TIMEOUT_MS, deadlines_on_answer,
                      deadlines, &deadlines->publishes, NULL) != THOLE_OK)
        return false;
    deadlines->failed = false;
    for (size_t i = 0; i < request->expiry.expired_len; i++)
        deadlines_publish(deadlines, request->mail.p, &request->expiry.expired[i]);
    (void)pthread_mutex_lock(&deadlines->lock);
    while (deadlines->open > 0) /* each is answered, at the latest by its timeout */
        (void)pthread_cond_wait(&deadlines->answered, &deadlines->lock);
    bool const stored = !deadlines->failed;
    (void)pthread_mutex_unlock(&deadlines->lock);
    return stored;
}

static thole_status end_some(struct deadlines *deadlines, struct postgres *pg, struct request *request)
{
    THOLE_TRY(projector_store_expire_begin(pg, &request->expiry.owner, request->expiry.slack_ms, EXPIRED_MAX,
                                           &request->arena, &request->expiry.expired,
                                           &request->expiry.expired_len, request_error(request)));
    bool const stored = request->expiry.expired_len > 0 && publish_all(deadlines, request);
    if (stored)
        return projector_store_expire_commit(pg, request_error(request));
    projector_store_expire_rollback(pg);
    if (request->expiry.expired_len > 0) {
        log_line_of(LOG_LEVEL_WARN, "sweeper", LOG_PARTITION(request->mail.p),
                    "%zu timeouts could not be stored, they are tried again", request->expiry.expired_len);
        request->expiry.deadline_in_ms = AGAIN_MS;
    }
    request->expiry.expired_len = 0;
    return THOLE_OK;
}

thole_status deadlines_store(struct postgres *pg, struct request *request)
{
    struct deadlines *const deadlines = request->shard->deadlines;
    THOLE_TRY(projector_store_next_deadline(pg, request->mail.p, &request->expiry.deadline_in_ms,
                                            request_error(request)));
    if (request->expiry.deadline_in_ms > 0)
        return THOLE_OK;
    THOLE_TRY(end_some(deadlines, pg, request));
    if (request->expiry.expired_len == 0)
        return THOLE_OK;
    return projector_store_next_deadline(pg, request->mail.p, &request->expiry.deadline_in_ms,
                                         request_error(request));
}
