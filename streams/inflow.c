/* Which consumer may send. */
#include "inflow.h"
#include "locked.h"
#include "memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct inflow {
    pthread_mutex_t lock;             /* the rest, and all its parts */
    size_t due;                       /* of all parts */
    struct inflow_part *first, *last; /* the waiting ones */
};

struct inflow *inflow_create(void)
{
    struct inflow *const inflow = memory_new(sizeof *inflow);
    pthread_mutex_init(&inflow->lock, NULL);
    return inflow;
}

void inflow_destroy(struct inflow *inflow)
{
    if (inflow == NULL)
        return;
    assert(inflow->due == 0 && inflow->first == NULL);
    pthread_mutex_destroy(&inflow->lock);
    free(inflow);
}

/* ---- the lock is held ---- */

static void set_due(struct inflow_part *part, size_t due)
{
    struct inflow *const inflow = part->inflow;
    assert(is_locked(&inflow->lock) && inflow->due >= part->due);
    inflow->due += due - part->due;
    part->due = due;
}

static size_t next_window(const struct inflow_part *part)
{
    if (part->window == 0)
        return INFLOW_WINDOW_FIRST;
    return part->window < INFLOW_WINDOW_MAX ? part->window * 2 : INFLOW_WINDOW_MAX;
}

/* Bytes that may still come once the part is granted. */
static size_t next_due(const struct inflow_part *part)
{
    size_t const window = next_window(part);
    return part->at_end || part->behind >= window ? 0 : window - part->behind;
}

/* One alone is never kept waiting. */
static bool inflow_has_room(const struct inflow_part *part)
{
    size_t const others = part->inflow->due - part->due;
    return others == 0 || others + next_due(part) <= INFLOW_BYTES;
}

static void inflow_grant(struct inflow_part *part)
{
    set_due(part, next_due(part));
    part->window = next_window(part);
    part->behind = 0;
    part->stopped = false;
}

static void leave_queue(struct inflow_part *part)
{
    struct inflow *const inflow = part->inflow;
    assert(part->waits);
    *(part->prev == NULL ? &inflow->first : &part->prev->next) = part->next;
    *(part->next == NULL ? &inflow->last : &part->next->prev) = part->prev;
    part->prev = part->next = NULL;
    part->waits = false;
}

/* Parts without a consumer go first: they need little, and their users wait for them. */
static void join_queue(struct inflow_part *part)
{
    struct inflow *const inflow = part->inflow;
    struct inflow_part *next = inflow->first;
    assert(!part->waits);
    part->waits = true;
    while (next != NULL && (part->window != 0 || next->window == 0))
        next = next->next;
    part->prev = next == NULL ? inflow->last : next->prev;
    part->next = next;
    *(part->prev == NULL ? &inflow->first : &part->prev->next) = part;
    *(part->next == NULL ? &inflow->last : &part->next->prev) = part;
}

static void serve_queue(struct inflow *inflow)
{
    for (struct inflow_part *part; (part = inflow->first) != NULL && inflow_has_room(part);) {
        leave_queue(part);
        inflow_grant(part);
        part->granted = true;
        part->turn(part->arg);
    }
}

/* ---- a part ---- */

bool inflow_ask(struct inflow_part *part)
{
    if (part->inflow == NULL)
        return true;
    pthread_mutex_lock(&part->inflow->lock);
    bool const at_end = part->window != 0 && next_due(part) == 0; /* needs no room */
    bool const fits = at_end || (part->inflow->first == NULL && inflow_has_room(part));
    bool const granted = part->granted || (!part->waits && fits);
    if (granted && !part->granted)
        inflow_grant(part);
    else if (!granted && !part->waits)
        join_queue(part);
    part->granted = false;
    serve_queue(part->inflow);
    pthread_mutex_unlock(&part->inflow->lock);
    return granted;
}

void inflow_came(struct inflow_part *part, size_t bytes, bool more)
{
    if (part->inflow == NULL)
        return;
    pthread_mutex_lock(&part->inflow->lock);
    size_t const due = part->at_end ? part->window : part->due;
    part->behind += bytes;
    part->at_end = !more;
    set_due(part, part->at_end || bytes >= due ? 0 : due - bytes);
    serve_queue(part->inflow);
    pthread_mutex_unlock(&part->inflow->lock);
}

void inflow_stops(struct inflow_part *part)
{
    if (part->inflow == NULL)
        return;
    pthread_mutex_lock(&part->inflow->lock);
    part->behind = 0;
    part->stopped = true;
    if (part->due > part->window / 2)
        set_due(part, part->window / 2);
    serve_queue(part->inflow);
    pthread_mutex_unlock(&part->inflow->lock);
}

void inflow_rests(struct inflow_part *part, bool stalled)
{
    if (part->inflow == NULL)
        return;
    pthread_mutex_lock(&part->inflow->lock);
    part->at_end = part->at_end || !stalled;
    if (!stalled || part->stopped)
        set_due(part, 0);
    serve_queue(part->inflow);
    pthread_mutex_unlock(&part->inflow->lock);
}

void inflow_end(struct inflow_part *part)
{
    if (part->inflow == NULL)
        return;
    pthread_mutex_lock(&part->inflow->lock);
    if (part->waits)
        leave_queue(part);
    set_due(part, 0);
    part->window = part->behind = 0;
    part->granted = part->at_end = part->stopped = false;
    serve_queue(part->inflow);
    pthread_mutex_unlock(&part->inflow->lock);
}
