/*
 * A start that stands in an instance's inbox: it was acknowledged, and no engine has taken it yet. Which one
 * does is the rule of docs/architecture.md, "Before the first turn".
 */
#ifndef THOLE_PENDING_START_H
#define THOLE_PENDING_START_H
#include "client_internal.h"
#include "message.h"

struct pending_start {
    bool is;                /* there is one: the members below */
    bool begun;             /* there is an instance by now: read its history (again) */
    bool unknown;           /* this user may not read the inbox */
    struct message message; /* in the arena */
    uint64_t sequence;      /* in the inbox */
    uint64_t stored_ms;     /* by the clock of NATS */
    uint64_t ahead;         /* at most so many messages of its partition are taken before it */
};
/* For who has found no instance in the history. Three round trips and more, from the leaders of the streams.
 */
THOLE_NODISCARD thole_status pending_start_find(struct thole_client *client, thole_slice instance,
                                                struct arena *arena, struct pending_start *ret,
                                                thole_error *reterr);
/* Whether a request about the instance (cancel, pause, ...) stands in its inbox, and is not taken; also if
 * that cannot be found out. */
THOLE_NODISCARD thole_status pending_request_find(struct thole_client *client, thole_slice instance,
                                                  bool *ret, thole_error *reterr);
/* Whether a request to delete the instance stands in its inbox after the start with sequence @p start, which
 * is not taken. */
THOLE_NODISCARD thole_status pending_deletion_find(struct thole_client *client, thole_slice instance,
                                                   uint64_t start, bool *ret, thole_error *reterr);
/* THOLE_NOT_FOUND, with what is known: it has found none. */
thole_status pending_start_absent(const struct thole_client *client, thole_slice instance,
                                  const struct pending_start *start, thole_error *reterr);
/* Why the history has no instance. */
enum absence {
    ABSENCE_NONE,  /* there is no such instance; the error says so */
    ABSENCE_START, /* a start waits */
    ABSENCE_OVER,  /* the instance has begun meanwhile */
};
/* Returns THOLE_OK with *ret, THOLE_NOT_FOUND for ABSENCE_NONE, or that it cannot be read. */
THOLE_NODISCARD thole_status absence_explain(struct thole_client *client, thole_slice instance,
                                             enum absence *ret, thole_error *reterr);
#endif
