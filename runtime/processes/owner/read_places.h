/*
 * Where the records stand of histories that were loaded lately: who deletes an instance has just loaded it,
 * and so its records need not be looked for again when they are removed (removing.h). Only of partitions as
 * they are open now: of an earlier ownership nothing is believed. The latest ones stay. For the shard's
 * thread.
 */
#ifndef THOLE_READ_PLACES_H
#define THOLE_READ_PLACES_H
#include "partition_io.h"
#include "removing.h"

struct read_places;
struct read_places *read_places_create(void);
void read_places_destroy(struct read_places *places); /* NULL-safe */
/* @p generation: of the partition's ownership. Copies all. Histories of more than REMOVING_KNOWN records are
 * not kept. */
void read_places_note(struct read_places *places, uint32_t p, uint64_t generation, thole_slice instance,
                      const struct log_record *records, size_t n);
/* Returns the known places, in order, and forgets them; 0: none. */
size_t read_places_take(struct read_places *places, uint32_t p, uint64_t generation, thole_slice instance,
                        struct removing_place ret[REMOVING_KNOWN]);
#endif
