/* Creation, reset and checks of the projection room. Its contract: projection.h. */
#include "memory.h"
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

struct projection *projection_create(struct env *env)
{
    struct projection *p = memory_new(sizeof *p);
    p->env = env;
    timers_release(p);
    return p;
}

void projection_reset(struct projection *p)
{
    projector_release(&p->projector);
    timers_release(p);
    redo_release(&p->redo);
    removals_release(&p->removals);
    emissions_release(&p->emissions);
    free(p->turns);
    projection_become(p, PROJECTION_CLOSED);
    *p = (struct projection){.env = p->env,
                             .epoch_known = p->epoch_known,
                             .projector = {.next_id = p->projector.next_id},
                             .emissions = {.next_id = p->emissions.next_id},
                             .timers = p->timers};
}

void projection_destroy(struct projection *p)
{
    if (p == NULL)
        return;
    projection_reset(p);
    free(p);
}

void projection_fail(struct projection *p, const char *why)
{
    p->why = why;
    projection_become(p, PROJECTION_FAILED);
}

enum projection_state projection_state(const struct projection *p)
{
    return p->state;
}

const char *projection_why(const struct projection *p)
{
    assert(p->state == PROJECTION_FAILED && p->why != NULL);
    return p->why;
}

const char *projection_take_step_down(struct projection *p)
{
    const char *why = p->step_down;
    p->step_down = NULL;
    return why;
}

uint64_t projection_epoch_known(const struct projection *p)
{
    return p->epoch_known;
}

bool projection_has_room(const struct projection *p)
{
    return p->projector.unprojected < UNPROJECTED_MAX &&
           p->projector.unprojected_bytes < UNPROJECTED_BYTES_MAX && projection_removals(p) < REMOVALS_MAX &&
           p->emissions.owed.len < EMISSIONS_MAX && p->emissions.owed.bytes < EMISSIONS_BYTES_MAX;
}

static void check_builds(const struct projection *p)
{
    size_t busy = 0, records = 0, bytes = 0;
    uint64_t id = 0, seq = 0;
    for (const struct projection_batch *b = p->projector.first; b != NULL; b = b->next) {
        bool const last = b == p->projector.last, waits = b->state <= BATCH_SEALED;
        assert(b->id > id && b->id <= p->projector.next_id);
        assert(b->state != BATCH_FILLING || last);
        assert(last == (b->next == NULL));
        assert(b->state == BATCH_PUBLISHING || b->publishes_left == 0);
        assert(b->state != BATCH_PUBLISHING || busy == 0);
        assert(b->last.seq == 0 || b->last.seq > seq);
        busy += !waits && b->state != BATCH_PUBLISHING;
        records += b->records;
        bytes += b->bytes;
        id = b->id;
        seq = b->last.seq > seq ? b->last.seq : seq;
    }
    assert(busy <= 1 && records == p->projector.unprojected && bytes == p->projector.unprojected_bytes);
}

/* Checks the counts of the repeated reading of the log. */
static void check_redo(const struct redo *redo)
{
    size_t open = 0, roots = 0;
    for (size_t i = 0; redo->open != NULL && i < redo->open->activities_len; i++)
        open += !redo->open->activities[i].gone;
    for (size_t i = 0; i < redo->roots_cap; i++)
        roots += redo->roots[i].id.len != 0;
    assert(open == redo->open_len && roots == redo->roots_len);
}

static void check_work_refs(const struct work_refs *refs)
{
    size_t n = 0;
    for (size_t i = 0; i < refs->cap; i++)
        n += refs->cells[i].sequence != 0;
    assert(n == refs->len);
}

void projection_check(const struct projection *p)
{
    const struct projector *projector = &p->projector;
    assert((projector->first == NULL) == (projector->last == NULL));
    check_builds(p);
    check_redo(&p->redo);
    check_work_refs(&projector->work_refs);
    emissions_check(p);
    assert(projector->rows.projected.seq <= projector->watermark_sent);
    assert(projector->durable <= projector->watermark_sent &&
           projector->watermark_sent <= projector->watermark.seq);
    assert(p->state >= PROJECTION_CATCHING_UP || projector->first == NULL);
    assert(p->state == PROJECTION_CATCHING_UP || (p->redo.open_len == 0 && !p->redo_reading));
    assert(p->state == PROJECTION_CATCHING_UP || p->state == PROJECTION_FAILED || p->redo.roots_len == 0);
    assert((p->state == PROJECTION_FAILED) == (p->why != NULL));
    removals_check(&p->removals);
    for (size_t i = 1; i < p->timers.heap.len; i++)
        assert(p->timers.heap.entries[(i - 1) / 2].due_ms <= p->timers.heap.entries[i].due_ms);
}
