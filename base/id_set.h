/* Ids of instances: gathered with repetitions, then sorted, each once. */
#ifndef THOLE_ID_SET_H
#define THOLE_ID_SET_H
#include "arena.h"

struct id_set {
    struct arena arena;
    thole_slice *ids;
    size_t len, cap;
    bool full; /* one more did not fit */
};
void id_set_init(struct id_set *set);
void id_set_release(struct id_set *set);
/* THOLE_LIMIT: more than 4 GiB of ids; `full` says so later, too. */
thole_status id_set_add(struct id_set *set, thole_slice id);
/* Ascending by bytes, each once. */
void id_set_sort(struct id_set *set);
/* Of a set that is sorted. */
bool id_set_has(const struct id_set *set, thole_slice id);
#endif
