/* The batches in order: the last one fills, those before it are on their way. */
#include "projection_state.h"
#include <assert.h>
#include <stdlib.h>

void projector_release(struct projector *projector)
{
    for (struct build *b = projector->first, *next; b != NULL; b = next) {
        next = b->next;
        build_destroy(b);
    }
    free(projector->parts);
    work_refs_release(&projector->work_refs);
    *projector = (struct projector){.next_id = projector->next_id};
}

struct build *project_filling(struct projection *p)
{
    struct projector *projector = &p->projector;
    struct build *last = projector->last;
    if (last != NULL && last->state == BUILD_FILLING && (!build_full(last) || projector->parts_len > 0))
        return last;
    return project_apart(p);
}

struct build *project_apart(struct projection *p)
{
    struct projector *projector = &p->projector;
    struct build *last = projector->last;
    struct build *b = build_create(projector->next_id + 1);
    if (b == NULL) {
        env_no_memory(p->env);
        return NULL;
    }
    projector->next_id++;
    if (last != NULL)
        last->next = b;
    else
        projector->first = b;
    if (last != NULL && last->state == BUILD_FILLING)
        last->state = BUILD_SEALED;
    projector->last = b;
    return b;
}

struct build *project_find(const struct projection *p, uint64_t token)
{
    struct build *b = p->projector.first;
    while (b != NULL && b->id != token >> BUILD_TOKEN_BITS)
        b = b->next;
    return b != NULL && b->state == BUILD_PUBLISHING ? b : NULL;
}
