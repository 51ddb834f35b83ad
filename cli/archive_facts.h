/* The facts in the records of one instance, for archives. */
#ifndef THOLE_ARCHIVE_FACTS_H
#define THOLE_ARCHIVE_FACTS_H
#include "client_internal.h"
#include "json.h"

struct archive_facts {
    thole_slice instance; /* allocated */
    uint32_t partition;
    uint64_t records, bytes, first_execution, execution, last_sequence;
    uint64_t started_ms, ended_ms;
    thole_instance_status status; /* UNKNOWN: it has not ended; CONTINUED_AS_NEW: its last execution has */
    char orchestration[THOLE_NAME_BYTES_MAX + 1];
    bool damaged;            /* a record does not decode */
    bool asked;              /* the engine was asked to prune it */
    struct record_hash last; /* of its last record; set by archive_check */
    uint64_t sealed;         /* records that are shown to be in a checkpoint */
};
void archive_facts_begin(struct archive_facts *facts, uint32_t partition, thole_slice instance);
void archive_facts_take(struct archive_facts *facts, uint64_t sequence, thole_slice bytes);
void archive_facts_release(struct archive_facts *facts); /* also when zeroed */
/* Members of an object. */
void archive_facts_members(const struct archive_facts *facts, struct json *json);
/* A row of a table; @p first: with the line of names. */
void archive_facts_row(const struct archive_facts *facts, bool first);
#endif
