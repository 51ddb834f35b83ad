#include "refused_starts.h"
#include "arena.h"
#include "clock.h"
#include "hash.h"
#include "log.h"
#include "memory.h"
#include "message.h"
#include "notice.h"
#include "rejected.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SENT_MAX = 4096, /* a power of two */
    SENT_BODY_MAX = 1024,
    REFUSED_SUBJECT_BYTES = 128,
    REFUSED_ARENA_MAX = 64 * 1024,
};

struct sent_start { /* followed by its texts */
    thole_slice rule, request_id, subject, body;
    uint64_t sequence, stored_ns, bytes;
    bool event; /* with a start or alone */
    uint8_t room[];
};

struct refused_starts {
    struct connection *connection;
    struct requests *requests;
    const char *ns;
    struct log_limits *lines;
    atomic_uint_fast64_t *count;
    struct subscription *subscription;
    pthread_mutex_t lock;
    struct sent_start
        *sent[SENT_MAX]; /* under lock; by hash: a later one takes the place of an earlier one */
};

static struct sent_start **sent_place(struct refused_starts *refused, thole_slice request_id)
{
    return &refused->sent[hash_bytes(1, request_id) % SENT_MAX];
}

static thole_slice sent_copy(uint8_t **at, thole_slice from)
{
    thole_slice const copy = {*at, from.len};
    if (from.len > 0)
        memcpy(*at, from.ptr, from.len);
    *at += from.len;
    return copy;
}

void refused_starts_note(struct refused_starts *refused, const char *rule, const struct message *message,
                         const struct bound_view *view)
{
    thole_slice const request_id = message->request_id;
    struct sent_start **const place = sent_place(refused, request_id);
    thole_slice const name = {(const uint8_t *)rule, strlen(rule) + 1}; /* with its NUL */
    thole_slice const body = {view->body.ptr,
                              view->body.len < SENT_BODY_MAX ? view->body.len : SENT_BODY_MAX};
    struct sent_start *const sent =
        memory_new(sizeof *sent + name.len + request_id.len + view->subject.len + body.len);
    uint8_t *at = sent->room;
    sent->rule = sent_copy(&at, name);
    sent->request_id = sent_copy(&at, request_id);
    sent->subject = sent_copy(&at, view->subject);
    sent->body = sent_copy(&at, body);
    sent->sequence = view->sequence;
    sent->stored_ns = view->stored_ns;
    sent->bytes = view->body.len;
    sent->event = message->event_name.len > 0;
    (void)pthread_mutex_lock(&refused->lock);
    free(*place);
    *place = sent;
    (void)pthread_mutex_unlock(&refused->lock);
}

/* Once, however often it is sent. NULL: it is another binder's, or a client's. */
static struct sent_start *sent_take(struct refused_starts *refused, thole_slice request_id)
{
    struct sent_start **const place = sent_place(refused, request_id), *sent = NULL;
    (void)pthread_mutex_lock(&refused->lock);
    if (*place != NULL && thole_slice_equal((*place)->request_id, request_id)) {
        sent = *place;
        *place = NULL;
    }
    (void)pthread_mutex_unlock(&refused->lock);
    return sent;
}

/* Nothing waits for the answer: the log has it in any case. */
static void sent_reject(struct refused_starts *refused, const struct sent_start *sent,
                        const struct event_notice *notice)
{
    const char *const rule = (const char *)sent->rule.ptr;
    char reason[THOLE_ID_BYTES_MAX + 128];
    (void)snprintf(
        reason, sizeof reason,
        sent->event ? "instance \"%.*s\" has ended: the event was dropped, unless it was taken before"
                    : "instance \"%.*s\" exists already, of another message or request: nothing was started",
        THOLE_FMT(notice->instance));
    struct rejected_item const item = {.binding = rule,
                                       .sequence = sent->sequence,
                                       .stored_ns = sent->stored_ns,
                                       .code = THOLE_STR("binding"),
                                       .reason = thole_slice_from(reason),
                                       .subject = sent->subject,
                                       .payload = sent->body,
                                       .bytes = sent->bytes};
    log_limits_line(refused->lines, clock_monotonic_ms(), BINDER_LINE_REJECTED, NULL,
                    "rule %s: message %llu is rejected: %s", rule, (unsigned long long)sent->sequence,
                    reason);
    (void)atomic_fetch_add(refused->count, 1);
    thole_status const ignored = rejected_publish(refused->requests, refused->ns, &item, 0, NULL);
    (void)ignored;
}

static void on_rejected(void *arg, const struct delivery *delivery)
{
    struct refused_starts *const refused = arg;
    struct event_notice notice;
    struct arena arena;
    arena_init(&arena, REFUSED_ARENA_MAX);
    if (event_notice_parse(delivery, &arena, &notice, NULL) == THOLE_OK && notice.request_id.len > 0 &&
        notice.code.len == 0) { /* else the engine has kept it */
        struct sent_start *const sent = sent_take(refused, notice.request_id);
        if (sent != NULL)
            sent_reject(refused, sent, &notice);
        free(sent);
    }
    arena_release(&arena);
}

thole_status refused_starts_open(struct connection *connection, struct requests *requests, const char *ns,
                                 struct log_limits *lines, atomic_uint_fast64_t *count,
                                 struct refused_starts **ret, thole_error *reterr)
{
    char subject[REFUSED_SUBJECT_BYTES];
    struct refused_starts *const refused = memory_new(sizeof *refused);
    *refused = (struct refused_starts){
        .connection = connection, .requests = requests, .ns = ns, .lines = lines, .count = count};
    (void)pthread_mutex_init(&refused->lock, NULL);
    (void)snprintf(subject, sizeof subject, "thole.%s.event.*.*.rejected", ns);
    thole_status const status =
        connection_serve(connection, subject, NULL, on_rejected, refused, &refused->subscription, reterr);
    if (status != THOLE_OK) {
        refused_starts_close(refused);
        return status;
    }
    *ret = refused;
    return THOLE_OK;
}

void refused_starts_close(struct refused_starts *refused)
{
    if (refused == NULL)
        return;
    subscription_close(refused->subscription);
    for (size_t i = 0; i < SENT_MAX; i++)
        free(refused->sent[i]);
    (void)pthread_mutex_destroy(&refused->lock);
    free(refused);
}
