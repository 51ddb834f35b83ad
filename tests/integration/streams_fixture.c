/* Common parts of the tests of streams/. */
#include "streams_fixture.h"
#include "server_process.h"
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct server fixture_server;

int fixture_main(const char *name, const struct thole_test *tests, size_t n)
{
    char dir[SERVER_PATH_BYTES];
    thole_error err = {0};
    skip_without_nats();
    if (server_dir_create("thole-streams", dir, &err) != THOLE_OK ||
        server_nats_start(&(struct nats_server_options){.dir = dir}, &fixture_server, &err) != THOLE_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int const result = thole_run_suite(name, tests, n);
    server_stop(&fixture_server);
    server_dir_remove(dir);
    return result;
}

struct connection *connect_to(const char *url)
{
    struct connection *connection = NULL;
    thole_error err = {0};
    struct connection_options const options = {
        .url = url, .name = "test", .connect_timeout_ms = 5000, .request_timeout_ms = 5000};
    CHECK_OK(connection_open(&options, &connection, &err), &err);
    if (connection == NULL)
        exit(1);
    return connection;
}

struct connection *connect_here(void)
{
    return connect_to(fixture_server.url);
}

const char *fresh_ns(void)
{
    static char ns[32];
    static int last;
    snprintf(ns, sizeof ns, "t%d", ++last);
    return ns;
}

struct topology fresh_topology(struct connection *connection, uint32_t partitions)
{
    struct topology topology = {0};
    thole_error err = {0};
    struct topology_options const options = {.ns = fresh_ns(),
                                             .partitions = partitions == 0 ? 1 : partitions};
    CHECK_OK(topology_ensure(connection, &options, &topology, &err), &err);
    return topology;
}

/* Writes the configuration and starts the server at its port. */
static bool run_configured(struct server *server, const char *program, const char *config)
{
    struct process process = {.len = 0};
    char path[SERVER_PATH_BYTES + 16];
    thole_error err = {0};
    snprintf(path, sizeof path, "%s/nats.conf", server->dir);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return false;
    fprintf(file, "listen: \"127.0.0.1:%u\"\n%s\n", server->port, config);
    fclose(file);
    snprintf(process.log, sizeof process.log, "%s/nats.log", server->dir);
    process_arg(&process, "%s", program);
    process_arg(&process, "-c");
    process_arg(&process, "%s", path);
    process_arg(&process, "-sd");
    process_arg(&process, "%s/store", server->dir);
    if (process_spawn(&process, &server->pid, &err) != THOLE_OK)
        return false;
    for (int i = 0; i < 500; i++) {
        if (server_port_is_open(server->port))
            return true;
        nap_ms(10);
    }
    return false;
}

bool start_configured(struct server *ret, const char *program, const char *config)
{
    *ret = (struct server){.kind = SERVER_NATS, .port = server_free_port()};
    if (server_dir_create("thole-nats", ret->dir, NULL) != THOLE_OK)
        return false;
    snprintf(ret->url, sizeof ret->url, "nats://127.0.0.1:%u", ret->port);
    return run_configured(ret, program, config);
}

bool restart_configured(struct server *server, const char *program, const char *config)
{
    process_kill9(server->pid);
    server->pid = 0;
    return run_configured(server, program, config);
}

void put_text(char ret[TEXT_BYTES], const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(ret, TEXT_BYTES, fmt, args);
    va_end(args);
}

bool reaches(const atomic_ulong *counter, unsigned long want)
{
    uint64_t const due = clock_ms() + WAIT_MS;
    while (atomic_load((atomic_ulong *)counter) < want) {
        if (clock_ms() > due)
            return false;
        usleep(200);
    }
    return true;
}

bool wait_epoch_above(const struct connection *connection, uint64_t old)
{
    uint64_t const due = clock_ms() + WAIT_MS;
    while (connection_epoch(connection) <= old) {
        if (clock_ms() > due)
            return false;
        nap_ms(1);
    }
    return true;
}

static int by_value(const void *a, const void *b)
{
    uint64_t const x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t median(uint64_t *values, size_t n)
{
    qsort(values, n, sizeof *values, by_value);
    return values[n / 2];
}

const char *api_answer(struct connection *connection, const char *subject, const char *json)
{
    static char text[65536];
    struct buf answer;
    thole_error err = {0};
    buf_init(&answer, sizeof text - 1);
    CHECK_OK(connection_request(connection, subject, thole_slice_from(json), &answer, &err), &err);
    snprintf(text, sizeof text, "%s", buf_cstr(&answer));
    buf_release(&answer);
    return text;
}

void sink_done(void *arg, const struct request_done *done)
{
    struct sink *sink = arg;
    switch (done->result) {
    case REQUEST_ANSWERED: atomic_fetch_add(&sink->answered, 1); break;
    case REQUEST_STORED: atomic_fetch_add(&sink->stored, 1); break;
    case REQUEST_REFUSED: atomic_fetch_add(&sink->refused, 1); break;
    case REQUEST_BUSY: atomic_fetch_add(&sink->busy, 1); break;
    case REQUEST_FAILED: atomic_fetch_add(&sink->failed, 1); break;
    case REQUEST_UNKNOWN: atomic_fetch_add(&sink->unknown, 1); break;
    }
    atomic_store(&sink->last_sequence, done->sequence);
    atomic_store(&sink->last_token, done->token);
    atomic_store(&sink->last_code, done->err_code);
    atomic_store(&sink->duplicate, done->duplicate);
    atomic_fetch_add(&sink->done, 1);
}

struct requests *open_window(struct connection *connection, size_t window, uint64_t timeout_ms,
                             struct sink *sink)
{
    struct requests *requests = NULL;
    thole_error err = {0};
    CHECK_OK(requests_open(connection, window, timeout_ms, sink_done, sink, &requests, &err), &err);
    return requests;
}

/* Which of the sink's counters has moved. */
static enum request_result moved(const struct sink *before, const struct sink *after)
{
    if (after->stored != before->stored)
        return REQUEST_STORED;
    if (after->refused != before->refused)
        return REQUEST_REFUSED;
    if (after->busy != before->busy)
        return REQUEST_BUSY;
    if (after->failed != before->failed)
        return REQUEST_FAILED;
    return after->answered != before->answered ? REQUEST_ANSWERED : REQUEST_UNKNOWN;
}

enum request_result publish_one(struct requests *requests, struct sink *sink, const struct publish *publish)
{
    struct sink before;
    thole_error err = {0};
    memcpy(&before, sink, sizeof before);
    CHECK_OK(requests_publish(requests, publish, 1, &err), &err);
    CU_ASSERT(reaches(&sink->done, before.done + 1));
    return moved(&before, sink);
}

void fill_stream(struct connection *connection, const char *subject_prefix, unsigned n, unsigned subjects)
{
    struct sink sink = {0};
    thole_error err = {0};
    struct requests *requests = open_window(connection, 256, 10000, &sink);
    for (unsigned i = 1; i <= n; i++) {
        char subject[256], body[16];
        int const len = snprintf(body, sizeof body, "%u", i);
        snprintf(subject, sizeof subject, "%s.%u", subject_prefix, i % subjects);
        struct publish const publish = {.subject = subject, .body = {(uint8_t *)body, (size_t)len}};
        while (requests_publish(requests, &publish, i, &err) == THOLE_LIMIT)
            usleep(50);
    }
    CU_ASSERT(reaches(&sink.stored, n));
    requests_close(requests);
}
