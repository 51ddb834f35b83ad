/* The surroundings of a binder, played: connection, bucket, consumers, pullers, requests, client library. */
#ifndef THOLE_WRAP_BINDER_WORLD_H
#define THOLE_WRAP_BINDER_WORLD_H
#include "connection.h"
#include "requests.h"
#include <stdbool.h>
#include <stdio.h>

enum binder_call {
    CALL_CONNECT,
    CALL_TOPOLOGY,
    CALL_BUCKET,
    CALL_CLIENT,
    CALL_REQUESTS,
    CALL_LISTEN,
    CALL_WATCH,
    CALL_GET,
    CALL_CONSUMER,
    CALL_PULL,
    CALL_STATE,
    CALL_FORGET,
    CALL_SEND,
    CALL_SIGNAL,
    CALL_ASKED,
    CALL_PUBLISH,
    CALLS
};

struct played_binder {
    size_t max_payload;
    uint64_t payload_max; /* of the namespace */
    bool down;            /* the connection */
    bool stopping;
};
extern struct played_binder binder_world;

void binder_world_begin(FILE *said);
void binder_world_end(void); /* all threads have ended, nothing is left open, each message has its end */
/* The bucket says so; the revision that is asked for is this one from now on. */
void played_rule(const char *name, uint64_t revision, thole_slice value);
/* To the rule's puller: "NAME: VALUE\n" for each header. */
void played_message(const char *rule, uint64_t sequence, const char *subject, const char *headers,
                    thole_slice body);
void played_refused(const char *rule);
/* The answer to what was sent for the message. */
void played_done(uint64_t sequence, enum request_result result);
/* To whoever serves calls. @p reply may be NULL. */
void played_call(const char *orchestration, const char *reply, const char *headers, thole_slice body);
#endif
