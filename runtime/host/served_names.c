#include "served_names.h"
#include "clock.h"
#include "memory.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWERS_BYTES_MAX = 64 * 1024 * 1024,
    ASK_MS = 3000,          /* between two questions */
    ASK_MS_PER_ANSWER = 20, /* added for each worker that has answered */
    DENIED_MS = 60 * 1000,  /* and after one that was forbidden */
    BELIEVED_TIMES = 2,     /* for so many of these times */
};

struct served_names {
    pthread_mutex_t lock; /* guards the rest */
    struct arena arena;
    struct served_name { /* in the arena, in order */
        thole_slice queue, activity;
    } * names;
    size_t len;
    uint64_t asked_ms, answered_ms; /* monotonic; 0: never; answered: when that was asked */
    uint64_t pause_ms;
    bool denied, silent; /* silent: no worker has answered */
};

struct served_names *served_names_create(void)
{
    struct served_names *const served = memory_new(sizeof *served);
    (void)pthread_mutex_init(&served->lock, NULL);
    arena_init(&served->arena, ANSWERS_BYTES_MAX);
    served->pause_ms = ASK_MS;
    return served;
}

void served_names_destroy(struct served_names *served)
{
    if (served == NULL)
        return;
    arena_release(&served->arena);
    (void)pthread_mutex_destroy(&served->lock);
    free(served);
}

static int served_order_slices(thole_slice a, thole_slice b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int served_order(const void *a, const void *b)
{
    const struct served_name *const x = a, *const y = b;
    int const order = served_order_slices(x->queue, y->queue);
    return order != 0 ? order : served_order_slices(x->activity, y->activity);
}

/* Those of one queue are said by each of its workers: each name once. */
static size_t served_once(struct served_name *names, size_t len)
{
    size_t kept = 0;
    qsort(names, len, sizeof *names, served_order);
    for (size_t i = 0; i < len; i++)
        if (kept == 0 || served_order(&names[kept - 1], &names[i]) != 0)
            names[kept++] = names[i];
    return kept;
}

struct served_asked {
    struct arena arena;
    struct roll_answer *answers;
    size_t answers_len;
    struct served_name *names;
    size_t len;
};

static thole_status served_read(struct served_asked *asked, thole_slice queue, thole_slice self,
                                thole_error *reterr)
{
    size_t most = 0;
    bool heard_self = self.len == 0;
    for (size_t i = 0; i < asked->answers_len; i++) {
        most += asked->answers[i].activities_len;
        heard_self |= thole_slice_equal(asked->answers[i].worker, self);
    }
    if (!heard_self)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "the worker that asked has not heard its own answer");
    asked->names = arena_array(&asked->arena, most + 1, sizeof *asked->names);
    if (asked->names == NULL)
        return thole_fail(reterr, THOLE_LIMIT, "the workers know more names than there is room for");
    for (size_t i = 0; i < asked->answers_len; i++) {
        const struct roll_answer *const answer = &asked->answers[i];
        if (queue.len > 0 && !thole_slice_equal(answer->queue, queue))
            continue;
        for (size_t k = 0; k < answer->activities_len; k++)
            asked->names[asked->len++] = (struct served_name){answer->queue, answer->activities[k]};
    }
    asked->len = served_once(asked->names, asked->len);
    return THOLE_OK;
}

static void served_keep(struct served_names *served, struct served_asked *asked, uint64_t at_ms)
{
    struct arena const before = served->arena;
    served->arena = asked->arena;
    asked->arena = before; /* the caller releases it */
    served->names = asked->names;
    served->len = asked->len;
    served->answered_ms = at_ms;
    served->silent = asked->answers_len == 0;
    served->pause_ms = ASK_MS + ASK_MS_PER_ANSWER * (uint64_t)asked->answers_len;
}

thole_status served_names_ask(struct served_names *served, struct connection *connection, const char *ns,
                              thole_slice queue, thole_slice self, thole_error *reterr)
{
    struct served_asked asked = {.len = 0};
    uint64_t const at_ms = clock_monotonic_ms();
    arena_init(&asked.arena, ANSWERS_BYTES_MAX);
    thole_status status = roll_call(connection, ns, &asked.arena, &asked.answers, &asked.answers_len, reterr);
    if (status == THOLE_OK)
        status = served_read(&asked, queue, self, reterr);
    (void)pthread_mutex_lock(&served->lock);
    served->asked_ms = at_ms;
    served->denied = status == THOLE_DENIED;
    if (served->denied)
        served->pause_ms = DENIED_MS;
    if (status == THOLE_OK)
        served_keep(served, &asked, at_ms);
    (void)pthread_mutex_unlock(&served->lock);
    arena_release(&asked.arena);
    return status;
}

/* Under the lock. */
static bool served_is_due(const struct served_names *served, uint64_t now_ms)
{
    return served->asked_ms == 0 || now_ms >= served->asked_ms + served->pause_ms;
}

enum served served_names_look(struct served_names *served, thole_slice queue, thole_slice activity,
                              uint64_t now_ms, bool *ret_asks)
{
    struct served_name const name = {queue, activity};
    enum served is = SERVED_UNKNOWN;
    (void)pthread_mutex_lock(&served->lock);
    *ret_asks = served_is_due(served, now_ms);
    if (served->answered_ms != 0 && !served->denied &&
        now_ms <= served->answered_ms + BELIEVED_TIMES * served->pause_ms)
        is = served->len > 0 && bsearch(&name, served->names, served->len, sizeof name, served_order) != NULL
                 ? SERVED_BY_SOME
                 : SERVED_BY_NONE;
    (void)pthread_mutex_unlock(&served->lock);
    return is;
}

bool served_names_asks(struct served_names *served, uint64_t now_ms)
{
    (void)pthread_mutex_lock(&served->lock);
    bool const asks = served_is_due(served, now_ms);
    (void)pthread_mutex_unlock(&served->lock);
    return asks;
}

bool served_names_silent(struct served_names *served)
{
    (void)pthread_mutex_lock(&served->lock);
    bool const silent = served->denied || served->silent;
    (void)pthread_mutex_unlock(&served->lock);
    return silent;
}
