/*
 * One request and its answer, between libmicrohttpd and the rest. All functions here but exchange_answered()
 * run on the server's thread, which never waits: a request for a worker is suspended until its answer comes,
 * a stream while it has nothing to send.
 */
#ifndef THOLE_EXCHANGE_H
#define THOLE_EXCHANGE_H
#include "access.h"
#include "answer.h"
#include "hub.h"
#include "jobs.h"
#include "routes.h"
#include "visitors.h"
#include <microhttpd.h>
#include <stdatomic.h>

struct console {
    struct console_options options;
    struct access_rules rules;
    struct MHD_Daemon *daemon;
    struct jobs *jobs;
    struct hub *hub;
    struct session sessions[CONSOLE_WORKERS];
    atomic_bool batch;
    struct visitors visitors; /* the server's thread's */
    char address[64];
};

/* Callbacks of the server; their argument is the console. */
enum MHD_Result exchange_on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *body,
                                    size_t *body_len, void **state);
void exchange_on_connection(void *arg, struct MHD_Connection *connection, void **state,
                            enum MHD_ConnectionNotificationCode what);
void exchange_on_end(void *arg, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode why);
/* % sequences stay as they are: a part of a path may have a slash in it. */
size_t exchange_unescape(void *arg, struct MHD_Connection *connection, char *text);
/* A job_fn, whose argument is the console. */
void exchange_work(void *arg, size_t worker, void *job);
#endif
