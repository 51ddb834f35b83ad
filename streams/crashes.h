/*
 * Which instances have crashed an engine: KV bucket THOLE_<ns>_CRASHES, one key <p>.<instance> for each, the
 * instance encoded as in subjects. Written by crash reporters and by the partition's owner; read when a
 * partition is opened. The value is JSON, readable for people.
 */
#ifndef THOLE_CRASHES_H
#define THOLE_CRASHES_H
#include "connection.h"

enum { CRASH_REPORT_BYTES_MAX = 1024 };

struct crash_entry {
    thole_slice instance;
    uint64_t count;            /* crashes with that build; 0: a retry was requested */
    uint64_t execution;        /* the execution that crashed last; 0: not known */
    thole_slice build;         /* of the code, see build_id() */
    thole_slice orchestration; /* whose code crashed */
    uint64_t version;
    thole_slice text; /* text about the last crash */
    uint64_t time_ms; /* of it, wall clock */
};

/*
 * Counts one more crash: increments the entry's count, or begins at 1 for another build. @p certain false: it
 * is not known that this instance caused the crash; the count becomes at most 1. All calls block.
 */
THOLE_NODISCARD thole_status crashes_add(struct connection *connection, const char *ns, uint32_t p,
                                         const struct crash_entry *entry, bool certain, uint64_t *ret_count,
                                         thole_error *reterr);
/* Writes the entry, replacing any other. */
THOLE_NODISCARD thole_status crashes_put(struct connection *connection, const char *ns, uint32_t p,
                                         const struct crash_entry *entry, thole_error *reterr);
/* Removes the entry. */
THOLE_NODISCARD thole_status crashes_remove(struct connection *connection, const char *ns, uint32_t p,
                                            thole_slice instance, thole_error *reterr);

/* Borrowed for the call; a status that is not OK ends the reading. */
typedef thole_status crashes_fn(void *arg, const struct crash_entry *entry);
/* All entries of a partition. Malformed ones are left out. */
THOLE_NODISCARD thole_status crashes_read(struct connection *connection, const char *ns, uint32_t p,
                                          crashes_fn *each, void *arg, thole_error *reterr);
#endif
