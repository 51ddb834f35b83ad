#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

void timer_heap_release(struct timer_heap *heap)
{
    for (size_t i = 0; i < heap->len; i++)
        free((void *)(uintptr_t)heap->entries[i].instance.ptr);
    free(heap->entries);
    *heap = (struct timer_heap){0};
}

/* Ties are broken by id, so that the order of firing does not depend on the heap's history. */
static bool timers_is_before(const struct timer_entry *a, const struct timer_entry *b)
{
    if (a->due_ms != b->due_ms)
        return a->due_ms < b->due_ms;
    return a->timer_id < b->timer_id;
}

static void sift_up(struct timer_heap *heap, size_t i)
{
    while (i > 0 && timers_is_before(&heap->entries[i], &heap->entries[(i - 1) / 2])) {
        struct timer_entry const swap = heap->entries[i];
        heap->entries[i] = heap->entries[(i - 1) / 2];
        heap->entries[(i - 1) / 2] = swap;
        i = (i - 1) / 2;
    }
}

static void sift_down(struct timer_heap *heap, size_t i)
{
    for (;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->len; child++)
            if (timers_is_before(&heap->entries[child], &heap->entries[least]))
                least = child;
        if (least == i)
            return;
        struct timer_entry const swap = heap->entries[i];
        heap->entries[i] = heap->entries[least];
        heap->entries[least] = swap;
        i = least;
    }
}

void timer_heap_push(struct timer_heap *heap, const struct batch_timer *timer)
{
    assert(timer->instance.len > 0);
    uint8_t *id = memory_copy(timer->instance.ptr, timer->instance.len);
    struct timer_entry *const entry = row_add((void **)&heap->entries, &heap->len, &heap->cap, sizeof *entry);
    *entry = (struct timer_entry){.due_ms = timer->due_ms,
                                  .execution = timer->execution,
                                  .timer_id = timer->timer_id,
                                  .instance = {id, timer->instance.len}};
    sift_up(heap, heap->len - 1);
}

bool timer_heap_pop_due(struct timer_heap *heap, uint64_t now_ms, struct timer_entry *ret)
{
    if (heap->len == 0 || heap->entries[0].due_ms > now_ms)
        return false;
    *ret = heap->entries[0];
    heap->entries[0] = heap->entries[--heap->len];
    sift_down(heap, 0);
    assert(heap->len == 0 || heap->entries[0].due_ms >= ret->due_ms);
    return true;
}

uint64_t timer_heap_next(const struct timer_heap *heap)
{
    return heap->len == 0 ? UINT64_MAX : heap->entries[0].due_ms;
}

/* --- the book: which timers are in memory, which only rows ------------------------------------------ */

static void timer_book_reset(struct timer_book *book)
{
    timer_heap_release(&book->heap);
    timer_heap_release(&book->recent);
    *book = (struct timer_book){.beyond_due = UINT64_MAX};
}

static void timers_enter(struct projection *p, const struct batch_timer *timer)
{
    struct timer_book *book = &p->timers;
    if (timer->due_ms >= book->horizon_end) {
        if (timer->due_ms < book->beyond_due)
            book->beyond_due = timer->due_ms;
    } else {
        timer_heap_push(&book->heap, timer);
    }
}

void timer_book_created(struct projection *p, const struct batch_timer *timer)
{
    if (p->timers.reading)
        timer_heap_push(&p->timers.recent, timer);
    timers_enter(p, timer);
}

void projection_read_timers(struct projection *p)
{
    struct timer_book *book = &p->timers;
    assert(!book->reading);
    book->reading = true;
    book->reading_before = p->env->now_ms + p->env->options.timer_horizon_ms;
    /* The query may miss rows that are not yet committed. */
    for (const struct projection_batch *b = p->projector.first; b != NULL; b = b->next)
        for (size_t i = 0; i < b->timers_len; i++)
            if (!b->timers[i].gone)
                timer_heap_push(&book->recent, &b->timers[i].row);
    env_emit(p->env, PARTITION_OUT_READ_TIMERS)->read_timers.before_ms = book->reading_before;
}

/* A timer that is in the heap twice fires twice; the instance accepts only the first. */
void projection_timers(struct projection *p, const struct in_timers *in)
{
    struct timer_book *book = &p->timers;
    if (!book->reading)
        return;
    book->reading = false;
    uint64_t const old_end = book->horizon_end;
    book->beyond_due = in->next_due_ms == 0 ? UINT64_MAX : in->next_due_ms;
    book->horizon_end = book->beyond_due < book->reading_before ? book->beyond_due : book->reading_before;
    for (size_t i = 0; i < in->timers_len; i++)
        if (in->timers[i].due_ms >= old_end)
            timers_enter(p, &in->timers[i]);
    for (size_t i = 0; i < book->recent.len; i++) {
        const struct timer_entry *e = &book->recent.entries[i];
        if (e->due_ms >= old_end)
            timers_enter(p, &(struct batch_timer){.instance = e->instance,
                                                  .execution = e->execution,
                                                  .timer_id = e->timer_id,
                                                  .due_ms = e->due_ms});
    }
    timer_heap_release(&book->recent);
}

static uint64_t read_at(const struct projection *p)
{
    const struct timer_book *book = &p->timers;
    if (book->reading || book->beyond_due == UINT64_MAX)
        return UINT64_MAX;
    uint64_t const ahead = p->env->options.timer_horizon_ms / 2;
    return book->beyond_due > ahead ? book->beyond_due - ahead : 0;
}

static void due_release(struct projection *p)
{
    free((void *)(uintptr_t)p->due.instance.ptr);
    p->due = (struct timer_entry){0};
}

bool projection_take_due(struct projection *p, struct projection_timer *ret)
{
    due_release(p);
    if (timer_heap_pop_due(&p->timers.heap, p->env->now_ms, &p->due)) {
        *ret = (struct projection_timer){p->due.execution, p->due.timer_id, p->due.instance};
        return true;
    }
    if (read_at(p) <= p->env->now_ms)
        projection_read_timers(p);
    return false;
}

void projection_wake(struct projection *p, const struct batch_timer *timer)
{
    timer_book_created(p, timer);
}

uint64_t projection_deadline_ms(const struct projection *p)
{
    uint64_t const fire = timer_heap_next(&p->timers.heap), read = read_at(p);
    uint64_t const due = fire < read ? fire : read, durable = p->projector.durable_next_ms;
    bool const waits = p->projector.first == NULL && project_undurable(p);
    return waits && durable < due ? durable : due;
}

void timers_release(struct projection *p)
{
    due_release(p);
    timer_book_reset(&p->timers);
}
