/* What a gateway stands on, played: connection, client library, worker roles, clock and threads. Its threads
 * are threads, but one at a time runs, until it waits: then another one does, or the next step of the script
 * happens, or time passes. */
#ifndef THOLE_WRAP_GATEWAY_WORLD_H
#define THOLE_WRAP_GATEWAY_WORLD_H
#include "wrap_mutexes.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct remote_handlers;
struct worker_host;
struct thole_activity;

enum { FIBERS_MAX = 1100, LISTENED_MAX = 8, ACTS_MAX = 26 };
enum played_call { CALL_CONNECT, CALL_CLIENT, CALL_LISTEN, CALL_HOST, CALL_ASKED, CALL_PUBLISH, CALLS };

struct played_gateway {
    FILE *said; /* what it did */
    uint64_t now_ms;
    const char *ends[CALLS]; /* how such calls end, one word each; behind these: "well" */
    size_t max_payload;
    bool brief; /* says nothing of connections and listeners */
    bool no_threads, stopping;
    uint8_t random;                         /* bytes of the last random number */
    const struct remote_handlers *handlers; /* of the last worker role */
    struct thole_activity *acts[ACTS_MAX];  /* by letter, from a */
};
extern struct played_gateway play;

void played_begin(FILE *said);
void played_end(void); /* all threads have ended, and nothing is left open */
/* Runs @p main on a thread of its own. */
void played_thread(void *(*main)(void *), void *arg);
/* All that is to happen before @p ms; then it is @p ms. UINT64_MAX: until nothing is to happen. */
void played_until(uint64_t ms);
/* To whoever listens. Without @p type no header; @p reply may be NULL. */
void played_deliver(const char *subject, const char *reply, const char *type, const void *body, size_t len);
/* The calling thread sleeps. */
void played_sleep(uint64_t ms);
struct worker_host *played_host(void); /* the only one */
/* The worker role's part in an activity is over. */
void played_ended(struct thole_activity *act, bool stored);
void played_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#endif
