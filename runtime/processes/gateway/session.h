/*
 * Inside the gateway role: a session stands for a remote worker. The session has a worker role of its own
 * (worker_host.h), whose activities are tasks for the remote worker; claims, leases and completions are those
 * of any worker.
 *
 * Threads: requests come on the connection's threads, the worker role decides on its loop; both take the
 * session's lock. A thread of the session starts the worker role, watches deadlines, and ends it.
 */
#ifndef THOLE_SESSION_H
#define THOLE_SESSION_H
#include "gateway_request.h"
#include "options.h"

enum {
    SESSION_ID_BYTES = 32 + 1,
    SESSION_SUFFIX_BYTES = 16 + 1,
    SESSION_CLAIMS_MAX = 2 * 10000,
    SESSION_SLOTS_MAX = 10000,
    SESSION_ACTIVITIES_MAX = 1000,
    SESSION_WAIT_MS_MAX = 60000
};

struct session;
struct session_options {
    const struct host_options *host; /* the gateway's; borrowed until the session has ended */
    struct connection *connection;
    const char *gateway;        /* id of the gateway; borrowed as well */
    struct metric_cells *cells; /* the gateway's, for metric_count(); NULL: nothing is counted */
    /* From the session's thread, when it has ended: the last call. */
    void (*ended)(void *arg, struct session *session);
    void *arg;
};
/* Answers the request, an OpenSession, now or when the worker role has started. NULL: refused. */
struct session *session_begin(const struct session_options *options, struct gateway_request *request);
const char *session_id(const struct session *session);
const char *session_queue(const struct session *session);
uint32_t session_slots(const struct session *session);
/* Slots that the request asks for; session_begin() refuses more than a session may have. */
uint32_t session_slots_asked(const struct gateway_request *request);
/* Whether the request, an OpenSession, goes on with what another session has. */
bool session_resumes(const struct gateway_request *request);
/* Takes the request. */
void session_request(struct session *session, struct gateway_request *request);
/* As if its worker had closed it. Any thread. */
void session_stop(struct session *session, uint64_t limit_ms);
/* Each holder has a reference; the opener has one. */
void session_hold(struct session *session);
void session_release(struct session *session);
#endif
