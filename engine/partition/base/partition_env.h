/*
 * All that the rooms of a partition share: the options, the time, the queue of outputs, and whether memory
 * ran out in this step. A room gets a pointer to it when it is created.
 */
#ifndef THOLE_PARTITION_ENV_H
#define THOLE_PARTITION_ENV_H
#include "partition_io.h"

enum {
    RECORD_OVERHEAD = 512,   /* of a turn's record, beside the texts, the position and the events */
    POSITION_BYTES_EACH = 8, /* of an inbox sequence, up to 2^56 */
    EVENT_BYTES_BESIDE = DETAILS_BYTES_MAX + 6144, /* of an event, beside one payload */
    EARLY_TIMER = 1, /* id of the timer row that gives up early events: (instance, execution 0, this) */
    DETAIL_BYTES_MAX = 1024, /* of a text that says why an instance is blocked, or how it ended */
};

/* Why a partition steps down: a history that was read holds a foreign record (log_rule_foreign). */
#define LOG_FOREIGN "a history holds what another owner wrote behind this epoch"

struct output {
    struct output *next;
    struct partition_out out;
    struct arena own; /* copies made for it */
};

struct env {
    struct partition_options options;
    uint64_t now_ms;     /* never goes back while the partition is open */
    uint64_t generation; /* of the outputs; answers with an older one are ignored */
    bool nomem;          /* memory ran out: the partition closes at the end of the step */
    struct output *first, *last, *taken;
};

/* Appends an output; its memory (copies made with env_copy) lives until it has been taken. Never NULL:
 * see memory.h. */
struct partition_out *env_emit(struct env *env, enum partition_out_kind kind);
thole_slice env_copy(struct env *env, thole_slice from); /* into the output that this step emitted last */
uint64_t *env_numbers(struct env *env, size_t n);        /* likewise; NULL: nomem */
/* Largest size in bytes of a record without its events. */
size_t env_record_beside(const struct partition_options *options);
void env_no_memory(struct env *env);                       /* remembers that memory ran out */
bool env_poll(struct env *env, struct partition_out *ret); /* see partition_poll() */
void env_clear(struct env *env);                           /* drops the outputs that have not been taken */
void env_release(struct env *env);                         /* also the output that was taken last */

/* SEND: bytes are borrowed until the answer. */
void env_send(struct env *env, const struct message *message, thole_slice bytes, uint64_t token);
/* @p kind: "deleted", "rejected", …: the outcome of a request to delete the instance. */
void env_notice_deletion(struct env *env, const struct deletion *deletion, const char *kind);
#endif
