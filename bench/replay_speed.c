/*
 * How fast histories are replayed.
 *   thole dev -- sh -c 'replay_speed write [N] && replay_speed replay --all'
 * writes N histories (default 20000) of 11 turns and 22 events with payloads of 100 bytes, a hundred of them
 * interleaved, straight into the streams, as an engine would have; then the replay role says how long it
 * takes. `replay_speed core [N]` replays such a history from memory, N times, without servers.
 */
#include "coro.h"
#include "instance.h"
#include "requests.h"
#include "subject.h"
#include "thole/program.h"
#include "topology.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ACTIVITIES = 10,
    TURNS = ACTIVITIES + 1,
    HISTORIES = 20000,
    TOGETHER = 100,
    WINDOW = 2048,
    TIMEOUT_MS = 30000
};

/* ---- the program ---- */

static thole_status steps(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    thole_slice value = input;
    for (int i = 0; i < ACTIVITIES; i++)
        THOLE_TRY(thole_await(ctx, thole_call(ctx, THOLE_STR("step"), value), &value));
    *ret_output = value;
    return THOLE_OK;
}

/* ---- one history as the core makes it ---- */

struct history {
    struct arena arena;
    struct record records[TURNS];
};

static void die(const char *what, const thole_error *err)
{
    (void)fprintf(stderr, "replay_speed: %s: %s\n", what, err->text);
    exit(1);
}

static void keep(struct history *history, size_t at, const struct turn_out *out)
{
    struct buf bytes;
    struct record const record = {.kind = RECORD_TURN,
                                  .epoch = 1,
                                  .n = 1,
                                  .turn = {.instance = THOLE_STR("x"),
                                           .execution = 1,
                                           .number = out->number,
                                           .time_ms = out->time_ms,
                                           .ran = true,
                                           .events = out->events,
                                           .events_len = out->events_len}};
    buf_init(&bytes, RECORD_BYTES_MAX);
    if (record_encode(&record, &bytes) != THOLE_OK ||
        record_decode(buf_bytes(&bytes), &history->arena, &history->records[at], NULL) != THOLE_OK)
        abort();
    buf_release(&bytes);
}

static struct instance_options options_with(struct stack_pool *stacks)
{
    return (struct instance_options){.code = steps,
                                     .id = THOLE_STR("x"),
                                     .execution = 1,
                                     .version = 1,
                                     .memory_max = 1024 * 1024,
                                     .payload_max = 4096,
                                     .stacks = stacks};
}

static void make_history(struct history *history)
{
    static const uint8_t payload[100] = "payload";
    thole_slice const data = {payload, sizeof payload};
    struct stack_pool *stacks = stack_pool_create(1, 1);
    struct instance_options const options = options_with(stacks);
    struct instance *const instance = instance_create(&options);
    struct event event = {
        .kind = EVENT_STARTED, .code = SEMANTICS_VERSION, .name = THOLE_STR("steps"), .data = data};
    thole_error err = {.status = THOLE_OK};
    arena_init(&history->arena, 1024 * 1024);
    for (size_t i = 0; i < TURNS; i++) {
        struct turn_in const in = {
            .time_ms = 1000 * (i + 1), .received = &event, .received_len = 1, .run = true};
        struct turn_out out;
        if (instance_turn(instance, &in, &out, &err) != THOLE_OK)
            die("turn", &err);
        keep(history, i, &out);
        event = (struct event){.kind = EVENT_ACTIVITY_COMPLETED,
                               .ref = out.events[out.events_len - 1].id,
                               .try_number = 1,
                               .data = data};
    }
    instance_destroy(instance);
    stack_pool_destroy(stacks);
}

/* ---- writing ---- */

struct writer {
    struct connection *connection;
    struct topology topology;
    struct requests *requests;
    atomic_uint_fast64_t done, failed;
    uint64_t sent, n[PARTITIONS_MAX];
    struct buf subject, body;
};

static void on_done(void *arg, const struct request_done *done)
{
    struct writer *writer = arg;
    atomic_fetch_add(&writer->done, 1);
    if (done->result != REQUEST_STORED)
        atomic_fetch_add(&writer->failed, 1);
}

static void publish(struct writer *writer, const struct record *record)
{
    thole_error err = {.status = THOLE_OK};
    struct publish const publish = {.subject = buf_cstr(&writer->subject), .body = {NULL, 0}};
    struct publish with = publish;
    buf_clear(&writer->body);
    if (record_encode(record, &writer->body) != THOLE_OK)
        abort();
    with.body = buf_bytes(&writer->body);
    thole_status status;
    while ((status = requests_publish(writer->requests, &with, 1, &err)) == THOLE_LIMIT)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (status != THOLE_OK)
        die("publish", &err);
    writer->sent++;
}

static void write_turn(struct writer *writer, const struct history *history, uint64_t number, size_t turn)
{
    char id[32];
    struct record record = history->records[turn];
    record.turn.instance =
        (thole_slice){(const uint8_t *)id, (size_t)snprintf(id, sizeof id, "speed-%" PRIu64, number)};
    uint32_t const p = subject_partition(record.turn.instance, writer->topology.partitions);
    record.n = ++writer->n[p];
    if (subject_history(&writer->subject, writer->topology.ns, p, record.turn.instance, 1, NULL) != THOLE_OK)
        abort();
    publish(writer, &record);
}

static void open_writer(struct writer *writer)
{
    const char *url = getenv("THOLE_NATS_URL");
    struct connection_options const connection = {.url = url == NULL ? "nats://127.0.0.1:4222" : url,
                                                  .name = "replay-speed",
                                                  .connect_timeout_ms = TIMEOUT_MS,
                                                  .request_timeout_ms = TIMEOUT_MS};
    struct topology_options const topology = {.ns = "default"};
    thole_error err = {.status = THOLE_OK};
    if (connection_open(&connection, &writer->connection, &err) != THOLE_OK ||
        topology_ensure(writer->connection, &topology, &writer->topology, &err) != THOLE_OK ||
        requests_open(writer->connection, WINDOW, TIMEOUT_MS, on_done, writer, &writer->requests, &err) !=
            THOLE_OK)
        die("NATS", &err);
    buf_init(&writer->subject, SUBJECT_BYTES_MAX);
    buf_init(&writer->body, RECORD_BYTES_MAX);
}

static int write_all(uint64_t histories)
{
    static struct writer writer;
    static struct history history;
    struct record const opened = {.kind = RECORD_EPOCH_OPENED, .epoch = 1, .node = THOLE_STR("bench")};
    make_history(&history);
    open_writer(&writer);
    for (uint32_t p = 0; p < writer.topology.partitions; p++) {
        if (subject_control(&writer.subject, writer.topology.ns, p, "epoch", NULL) != THOLE_OK)
            abort();
        publish(&writer, &opened);
    }
    for (uint64_t first = 0; first < histories; first += TOGETHER)
        for (size_t turn = 0; turn < TURNS; turn++)
            for (uint64_t i = first; i < first + TOGETHER && i < histories; i++)
                write_turn(&writer, &history, i, turn);
    while (atomic_load(&writer.done) < writer.sent)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    requests_close(writer.requests);
    connection_close(writer.connection);
    buf_release(&writer.subject);
    buf_release(&writer.body);
    arena_release(&history.arena);
    (void)printf("%" PRIu64 " histories, %" PRIu64 " records written, %" PRIu64 " not\n", histories,
                 writer.sent, (uint64_t)atomic_load(&writer.failed));
    return atomic_load(&writer.failed) == 0 ? 0 : 1;
}

/* ---- the core alone ---- */

static uint64_t replay_one(const struct history *history, const struct instance_options *options)
{
    thole_error err = {.status = THOLE_OK};
    uint64_t events = 0;
    struct instance *const instance = instance_create(options);
    for (size_t i = 0; i < TURNS; i++) {
        if (instance_replay(instance, &history->records[i].turn, &err) != THOLE_OK)
            die("replay", &err);
        events += history->records[i].turn.events_len;
    }
    instance_destroy(instance);
    return events;
}

/* Decoded turns that are in memory, one history after the other, in this thread. */
static int replay_core(uint64_t histories)
{
    static struct history history;
    struct timespec begin, end;
    uint64_t events = 0;
    make_history(&history);
    struct stack_pool *const stacks = stack_pool_create(1, 1);
    struct instance_options const options = options_with(stacks);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (uint64_t i = 0; i < histories; i++)
        events += replay_one(&history, &options);
    clock_gettime(CLOCK_MONOTONIC, &end);
    stack_pool_destroy(stacks);
    arena_release(&history.arena);
    double const seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    (void)printf("core: %" PRIu64 " histories, %" PRIu64 " events in %.3f s: %.0f events/s\n", histories,
                 events, seconds, (double)events / seconds);
    return events == histories * (2 * TURNS) ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{.name = "steps", .run = steps}};
    static const thole_program program = {.size = sizeof program,
                                          .name = "replay_speed",
                                          .orchestrations = orchestrations,
                                          .orchestrations_len = 1};
    if (argc >= 2 && strcmp(argv[1], "write") == 0)
        return write_all(argc > 2 ? strtoul(argv[2], NULL, 10) : HISTORIES);
    if (argc >= 2 && strcmp(argv[1], "core") == 0)
        return replay_core(argc > 2 ? strtoul(argv[2], NULL, 10) : HISTORIES);
    return thole_main(argc, argv, &program);
}
