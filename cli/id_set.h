/* A set of instance ids: filled, sorted, asked. */
#ifndef THOLE_ID_SET_H
#define THOLE_ID_SET_H
#include "arena.h"
#include "buf.h"

struct id_set {
    struct arena arena;
    struct buf ids; /* thole_slice */
    bool full;      /* one more did not fit */
};
void id_set_init(struct id_set *set);
void id_set_release(struct id_set *set);
void id_set_add(struct id_set *set, thole_slice id);
/* Ascending by bytes, each once. */
void id_set_sort(struct id_set *set);
size_t id_set_len(const struct id_set *set);
thole_slice id_set_at(const struct id_set *set, size_t i);
/* Of a set that is sorted. */
bool id_set_has(const struct id_set *set, thole_slice id);
#endif
