/* The batches in order: the last one fills, those before it are being carried out. */
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

void projector_release(struct projector *projector)
{
    for (struct projection_batch *b = projector->first, *next; b != NULL; b = next) {
        next = b->next;
        projection_batch_destroy(b);
    }
    free(projector->parts);
    work_refs_release(&projector->work_refs);
    *projector = (struct projector){.next_id = projector->next_id};
}

struct projection_batch *project_filling(struct projection *p)
{
    struct projector *projector = &p->projector;
    struct projection_batch *last = projector->last;
    if (last != NULL && last->state == BATCH_FILLING &&
        (!projection_batch_full(last) || projector->parts_len > 0))
        return last;
    return project_apart(p);
}

struct projection_batch *project_apart(struct projection *p)
{
    struct projector *projector = &p->projector;
    struct projection_batch *last = projector->last;
    struct projection_batch *b = projection_batch_create(projector->next_id + 1);
    projector->next_id++;
    assert((last == NULL) == (projector->first == NULL) && (last == NULL || last->next == NULL));
    if (last != NULL)
        last->next = b;
    else
        projector->first = b;
    if (last != NULL && last->state == BATCH_FILLING)
        projection_batch_become(last, BATCH_SEALED);
    projector->last = b;
    return b;
}

struct projection_batch *project_find(const struct projection *p, uint64_t token)
{
    struct projection_batch *b = p->projector.first;
    while (b != NULL && b->id != token >> BATCH_TOKEN_BITS)
        b = b->next;
    return b != NULL && b->state == BATCH_PUBLISHING ? b : NULL;
}
