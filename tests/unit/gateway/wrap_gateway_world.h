/* The surroundings of a gateway, played: connection, client library and worker roles. */
#ifndef THOLE_WRAP_GATEWAY_WORLD_H
#define THOLE_WRAP_GATEWAY_WORLD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct remote_handlers;
struct worker_host;
struct thole_activity;

enum { LISTENED_MAX = 1100, ACTS_MAX = 26 };
enum played_call {
    CALL_CONNECT,
    CALL_CLIENT,
    CALL_LISTEN,
    CALL_HOST,
    CALL_ASKED,
    CALL_PUBLISH,
    CALL_SHOWN,
    CALL_TOLD,
    CALLS
};

struct played_gateway {
    size_t max_payload;
    bool stopping;
    const struct remote_handlers *handlers; /* of the last worker role */
    struct thole_activity *acts[ACTS_MAX];  /* by letter, from a */
};
extern struct played_gateway gate;

void gateway_world_begin(FILE *said);
void gateway_world_end(void); /* all threads have ended, and nothing is left open */
/* To whoever listens. Without @p type no header; @p reply may be NULL. */
/* "NAME: VALUE": a header of all that is delivered from now on, in this script. */
void played_with(const char *header);
void played_deliver(const char *subject, const char *reply, const char *type, const void *body, size_t len);
void played_unheard(const char *subject); /* nobody has heard what was sent with this reply subject */
struct worker_host *played_host(void);    /* the only one */
/* The worker role's part in an activity is over. */
void played_ended(struct thole_activity *act, bool stored);
#endif
