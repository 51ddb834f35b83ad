/*
 * Which engines are live. A user who may write to the bucket of heartbeats can store one in any engine's
 * name, and remove one; so a heartbeat only says whom to ask. An engine is live when it has answered a
 * question that was sent to it alone, with the hash of the heartbeat that it acknowledges as its own; the
 * contents of that heartbeat count, and no other's.
 *
 * A member is asked when its heartbeat is new, again after 100, 200, 400, … ms, and once in ask_ms while it
 * is live. It is no longer live when it has not answered a question for the TTL, when no heartbeat of it came
 * for the TTL, or when its heartbeat was removed and nobody answers for it. So a slow asker takes no engine
 * for silent, and the removal of a heartbeat that its engine has not asked for changes nothing.
 *
 * Pure: times are the caller's monotonic milliseconds, questions and lines for the log are calls.
 */
#ifndef THOLE_LIVE_NODES_H
#define THOLE_LIVE_NODES_H
#include "arena.h"
#include "message.h"
#include "tagged_hash.h"

enum { HEARTBEAT_BYTES_MAX = 512 * 1024, LIVE_MAX = 1024 };

struct member {
    struct arena arena;
    struct heartbeat heartbeat;
    struct tagged_hash hash; /* of its heartbeat's bytes */
    size_t bytes;
    /* when the heartbeat was received, at first and at last; when the last was stored, by the server's clock
     */
    uint64_t first_ms, seen_ms, stored_ns;
    uint64_t asked_ms; /* the oldest question without an answer; 0: none */
    uint64_t next_ask_ms, pause_ms;
    bool there;
    bool nobody;       /* the server says that nobody is subscribed under its name */
    bool removed;      /* the heartbeat was removed: if nobody answers, the engine has left */
    bool told;         /* silence was reported */
    uint8_t *left_out; /* bit p: it has not opened partition p when it was its turn; NULL: none */
};

enum live_line {
    LIVE_JOINED,
    LIVE_LEFT,
    LIVE_GONE,    /* no heartbeat for the TTL */
    LIVE_SILENT,  /* was live, and does not answer */
    LIVE_ABSENT,  /* there is a heartbeat, and nobody who answers */
    LIVE_IGNORED, /* a heartbeat that does not count */
    LIVE_FULL,
};
struct live_calls {
    bool (*ask)(void *arg, thole_slice node); /* false: not sent */
    /* @p why may be NULL. */
    void (*say)(void *arg, enum live_line line, thole_slice node, const char *why);
    void *arg;
};

struct live_nodes;
struct live_nodes *live_create(thole_slice self, uint32_t partitions, uint64_t ttl_ms, uint64_t ask_ms,
                               const struct live_calls *calls);
void live_destroy(struct live_nodes *live); /* NULL-safe */

/* The hash under which heartbeats and answers name the same bytes. */
struct tagged_hash live_hash(thole_slice heartbeat);
/* Own heartbeats count when they have this hash. */
void live_stand_by(struct live_nodes *live, const struct tagged_hash *own);

struct live_entry { /* of the bucket; bytes empty: it was removed */
    thole_slice node, bytes;
    uint64_t stored_ns, seen_ms;
};
/* True: another program has removed or replaced our own heartbeat; it should be stored again. */
bool live_heard(struct live_nodes *live, const struct live_entry *entry);
/* @p hash: of the heartbeat that the engine stands by; empty: the server says that nobody listens. */
void live_answered(struct live_nodes *live, thole_slice node, thole_slice hash, uint64_t now_ms);
/* Drops members that are no longer live, and asks those whose time has come. */
void live_step(struct live_nodes *live, uint64_t now_ms);
uint64_t live_deadline(const struct live_nodes *live); /* when to step again; UINT64_MAX: never */

/* Of all others who have a heartbeat it is known whether they are there. */
bool live_settled(const struct live_nodes *live);
bool live_alone(const struct live_nodes *live); /* there is no other heartbeat */
/* NULL: not live. This engine is live when its own heartbeat has been received. Borrowed until the next call
 * that is not const. */
const struct member *live_find(const struct live_nodes *live, thole_slice node);
/* All that are there; returns how many. */
size_t live_there(const struct live_nodes *live, const struct member *ret[LIVE_MAX]);
/* Whether all engines take several results in one message, including those that may be live or not: a silent
 * one may come back. False when no engine is live. */
bool live_take_results(const struct live_nodes *live);
/* Likewise, whether all read the ranges of a record's inbox position. */
bool live_read_ranges(const struct live_nodes *live);
/* Likewise, whether all read references to payloads of a record. */
bool live_read_references(const struct live_nodes *live);
/* Whether every engine reads lists of dispensable records, likewise. */
bool live_read_lists(const struct live_nodes *live);

/* Excludes the engine from the partition's owners until it opens the partition, is restarted, or is no longer
 * live. */
void live_leave_out(struct live_nodes *live, thole_slice node, uint32_t p);
void live_take_in(struct live_nodes *live, thole_slice node, uint32_t p);
bool member_is_left_out(const struct member *member, uint32_t p);
#endif
