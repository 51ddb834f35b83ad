/* A log as a partition writes it, for the checks of it. */
#ifndef THOLE_AUDIT_LOG_H
#define THOLE_AUDIT_LOG_H
#include "audit.h"

enum { LOG_MAX = 10064, SAID_BYTES = 1024, LOG_INSTANCES = 3 };

struct log {
    struct arena arena;
    struct audit_record records[LOG_MAX]; /* sequence 0: removed */
    size_t len;
    uint64_t epoch, n, sequence, committed_lag, turns[LOG_INSTANCES];
    struct record_hash newest, instances[LOG_INSTANCES];
    bool old;              /* the writer writes no hashes */
    char said[SAID_BYTES]; /* findings: "FAULT SEQUENCE, ..." */
    size_t findings;
    struct seal *seal; /* published seal; NULL: none */
    bool extends;      /* see struct audit_options */
};
extern const char *const story_ids[LOG_INSTANCES]; /* a, b, c */

/* #1 opens epoch 1; #2 a, #3 b, #4 a, #5 c, #6 b, #7 position; #8 opens epoch 2; #9 a, #10 b, #11 c, #12 a */
struct log *story_written(void);
void story_end(struct log *log);
void story_open_epoch(struct log *log);
void story_turn(struct log *log, size_t instance);
void story_turn_in(struct log *log, size_t instance, uint64_t execution, bool prunes);
void story_delete_instance(struct log *log, size_t instance);
/* Checked; what is found is in `said`. */
struct audit_summary story_check_as(struct log *log, const char *ns, uint32_t partition);
struct audit_summary story_check(struct log *log); /* namespace ns, partition 3 */
struct audit_summary story_check_instance(struct log *log, size_t instance);
#endif
