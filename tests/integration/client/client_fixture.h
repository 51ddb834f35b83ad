/* Common parts of the tests of the client library: a nats-server, the script that plays the engine, one
 * client. */
#ifndef THOLE_CLIENT_FIXTURE_H
#define THOLE_CLIENT_FIXTURE_H
#include "engine_script.h"
#include "integration.h"
#include "thole/client.h"
#include "thole_cunit.h"
#include <time.h>

enum { FIXTURE_TIMEOUT_MS = 1000, FIXTURE_WAIT_MS = 20000 };

struct client_fixture {
    struct server server;
    struct engine_script script;
    thole_client *client;
    thole_error err;
};
extern struct client_fixture fixture;

/* Skips without a nats-server; opens all of it for the namespace "default", runs the suite, closes. The exit
 * code of the program. */
int fixture_run(const char *name, const struct thole_test *tests, size_t n);
thole_status fixture_client(const char *ns, thole_client **ret);

/* A function, so that what is checked is done once. */
void fixture_check(const char *row, const char *got, const char *want);
#define CHECK_STATUS(got, want) fixture_check(#got, thole_status_name(got), thole_status_name(want))

struct timespec fixture_begin(void);
uint64_t fixture_elapsed_ms(const struct timespec *since);

/* Status, execution and output of an outcome, which is released; a status that is not OK by its name.
 * Static. */
const char *fixture_outcome(thole_status status, thole_outcome *outcome);
const char *fixture_wait(const char *id, uint64_t wait_ms);

/* One record with one event, as an engine would write it; false when it is not stored. */
bool fixture_write(uint64_t epoch, uint64_t n, const char *id, uint64_t number, const struct event *event);
bool fixture_started(uint64_t n, const char *id, const char *request);

/* "turn.id Kind data|" for each event, with "execution/" in front when it is not the first. Static. */
const char *fixture_history(const char *id);
#endif
