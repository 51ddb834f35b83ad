/* Inside of the log room. */
#ifndef THOLE_LOG_STATE_H
#define THOLE_LOG_STATE_H
#include "partition_log.h"
#include "payload_hash.h"

struct link { /* one record of this epoch that is not yet committed */
    uint64_t n;
    bool acked;
    uint64_t floor;     /* inbox floor that it makes durable */
    uint64_t committed; /* as its record says */
    void *tag;
    thole_slice instance; /* borrowed */
    uint64_t execution;
    struct buf bytes;
    struct turn_log *lines; /* of the turn that it ends, in arena */
    size_t lines_len;
    struct arena arena;
};

struct partition_log {
    struct env *env;
    struct salt_source salts;
    enum log_state state;
    char why[160]; /* FAILING, LOST */

    /* READING, REMOVING, FOUND */
    bool read_all;   /* READING: all records from the EpochOpened on were asked for */
    bool read_again; /* REMOVING: read the tail again afterwards */
    struct log_tail found;
    uint64_t found_epoch, found_n; /* the last epoch, its last record that counts */
    uint64_t found_counted;        /* how many records count; 0: not known */
    struct arena found_arena;      /* of found.position */

    /* FOUND and later: of the last record that counts, of this owner's the last that was appended */
    struct record_hash newest;

    /* OPENING, OPEN, FAILING */
    struct link *links; /* ring */
    size_t head, cap;   /* length: facts.in_flight */
    struct link taken;  /* the one that log_take_committed() returned */
    uint64_t failed_n;  /* FAILING: the epoch ends before it */
    struct log_facts facts;
};
/* The only way to change the state; asserts that the new one may follow. */
void log_become(struct partition_log *log, enum log_state state);
void log_lose(struct partition_log *log, const char *why);
struct link *log_link(const struct partition_log *log, size_t i); /* the i-th of those in flight */
#endif
