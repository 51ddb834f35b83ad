/* The records of all histories of the stand's namespace, with the time at which the server stored each. */
#ifndef THOLE_BENCH_HISTORIES_H
#define THOLE_BENCH_HISTORIES_H
#include "event.h"
#include "stand.h"
#include "topology.h"

enum { HISTORIES_PARTITIONS_MAX = 64 };

struct histories {
    struct connection *connection;
    struct topology topology;
    uint64_t read_to[HISTORIES_PARTITIONS_MAX]; /* sequence, of each partition's stream */
};

/* @p record is borrowed for the call. */
typedef void histories_fn(void *arg, uint32_t partition, uint64_t stored_ns, const struct record *record);

/* False with a message. The namespace must have been set up. */
bool histories_open(struct histories *ret);
void histories_close(struct histories *histories);
/* Skips the records stored so far: they are not read later. */
bool histories_skip(struct histories *histories);
/* All records that are there now and were not read or skipped before. */
bool histories_read(struct histories *histories, histories_fn *each, void *arg);
/* The number at the end of an instance's id "PREFIXNUMBER". False: another id. */
bool histories_number(thole_slice instance, const char *prefix, uint64_t *ret);
#endif
