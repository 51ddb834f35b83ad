#include "client_fixture.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct client_fixture fixture;

void fixture_check(const char *row, const char *got, const char *want)
{
    CHECK_STR(row, got, want);
}

uint64_t fixture_elapsed_ms(const struct timespec *since)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)((now.tv_sec - since->tv_sec) * 1000 + (now.tv_nsec - since->tv_nsec) / 1000000);
}

struct timespec fixture_begin(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now;
}

thole_status fixture_client(const char *ns, thole_client **ret)
{
    thole_client_options options;
    thole_client_options_init(&options);
    options.nats_url = fixture.server.url;
    options.ns = ns;
    options.timeout_ms = FIXTURE_TIMEOUT_MS;
    return thole_client_open(&options, ret, &fixture.err);
}

const char *fixture_outcome(thole_status status, thole_outcome *outcome)
{
    static char text[256];
    if (status != THOLE_OK)
        (void)snprintf(text, sizeof text, "%s", thole_status_name(status));
    else
        (void)snprintf(text, sizeof text, "%s #%" PRIu64 " %.*s%s%s",
                       thole_instance_status_name(outcome->status), outcome->execution,
                       THOLE_FMT(outcome->output), outcome->error_type.len > 0 ? " type " : "",
                       (const char *)outcome->error_type.ptr);
    if (status == THOLE_OK)
        thole_outcome_release(outcome);
    return text;
}

const char *fixture_wait(const char *id, uint64_t wait_ms)
{
    thole_outcome outcome = {.status = THOLE_INSTANCE_UNKNOWN};
    thole_status const status =
        thole_client_wait(fixture.client, thole_slice_from(id), wait_ms, &outcome, &fixture.err);
    return fixture_outcome(status, &outcome);
}

bool fixture_write(uint64_t epoch, uint64_t n, const char *id, uint64_t number, const struct event *event)
{
    struct turn const turn = {
        .instance = thole_slice_from(id), .execution = 1, .number = number, .events = event, .events_len = 1};
    return engine_script_turn(&fixture.script, epoch, n, &turn);
}

bool fixture_started(uint64_t n, const char *id, const char *request)
{
    struct event const started = {.kind = EVENT_STARTED,
                                  .id = 1,
                                  .code = SEMANTICS_VERSION,
                                  .name = THOLE_STR("order"),
                                  .request_id = thole_slice_from(request)};
    return fixture_write(1, n, id, 1, &started);
}

struct rendered {
    char text[512];
};

static thole_status collect(void *arg, const thole_history_event *event)
{
    struct rendered *rendered = arg;
    size_t const len = strlen(rendered->text);
    char execution[24] = "";
    if (event->execution != 1)
        (void)snprintf(execution, sizeof execution, "%" PRIu64 "/", event->execution);
    (void)snprintf(rendered->text + len, sizeof rendered->text - len, "%s%" PRIu64 ".%" PRIu64 " %s %.*s|",
                   execution, event->turn, event->id, event->kind, THOLE_FMT(event->data));
    return THOLE_OK;
}

const char *fixture_history(const char *id)
{
    static struct rendered rendered;
    rendered.text[0] = '\0';
    thole_status const status =
        thole_client_history(fixture.client, thole_slice_from(id), collect, &rendered, &fixture.err);
    if (status != THOLE_OK)
        (void)snprintf(rendered.text, sizeof rendered.text, "%s", thole_status_name(status));
    return rendered.text;
}

int fixture_run(const char *name, const struct thole_test *tests, size_t n)
{
    char dir[SERVER_PATH_BYTES];
    int code = 1;
    skip_without_nats();
    unsetenv("THOLE_POSTGRES");
    unsetenv("THOLE_NAMESPACE");
    if (server_dir_create("thole-client", dir, &fixture.err) != THOLE_OK)
        return 1;
    struct nats_server_options const nats = {.dir = dir};
    if (server_nats_start(&nats, &fixture.server, &fixture.err) == THOLE_OK &&
        engine_script_open(&fixture.script, fixture.server.url, "default", &fixture.err) == THOLE_OK) {
        if (fixture_client("default", &fixture.client) == THOLE_OK)
            code = thole_run_suite(name, tests, n);
        thole_client_close(fixture.client);
        engine_script_close(&fixture.script);
    }
    if (code != 0)
        fprintf(stderr, "%s\n", fixture.err.text);
    server_stop(&fixture.server);
    server_dir_remove(dir);
    return code;
}
