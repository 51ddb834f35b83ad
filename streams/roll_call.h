/*
 * The workers of a namespace: a request on thole.<ns>.workers that every worker answers. Core NATS, nothing
 * is stored; a worker that does not answer in time is missing.
 */
#ifndef THOLE_ROLL_CALL_H
#define THOLE_ROLL_CALL_H
#include "arena.h"
#include "connection.h"

enum { ROLL_CALL_ACTIVITIES_MAX = 10000, ROLL_CALL_QUIET_MS = 100, ROLL_CALL_SILENCE_MS = 500 };

/* Headers Thole-Worker, Thole-Queue, Thole-Slots; the body is the names of its activities, with commas. */
struct roll_answer {
    thole_slice worker, queue;
    uint64_t slots;
    const thole_slice *activities;
    size_t activities_len;
};

/* thole.<ns>.workers */
THOLE_NODISCARD thole_status roll_call_subject(struct buf *to, const char *ns, thole_error *reterr);
/* For the worker's subscription; never blocks. A question without a reply subject is ignored. */
THOLE_NODISCARD thole_status roll_call_answer(struct connection *connection, const struct delivery *question,
                                              const struct roll_answer *answer, thole_error *reterr);
/* THOLE_CORRUPT for anything malformed. In memory of @p arena. */
THOLE_NODISCARD thole_status roll_answer_parse(const struct delivery *delivery, struct arena *arena,
                                               struct roll_answer *ret, thole_error *reterr);

/* All answers, by queue and worker, in memory of @p arena. Blocks until no answer has come for
 * ROLL_CALL_QUIET_MS, or none at all for ROLL_CALL_SILENCE_MS; returns at once when no worker is
 * subscribed. THOLE_DENIED: this user may not ask. */
THOLE_NODISCARD thole_status roll_call(struct connection *connection, const char *ns, struct arena *arena,
                                       struct roll_answer **ret, size_t *ret_len, thole_error *reterr);
#endif
