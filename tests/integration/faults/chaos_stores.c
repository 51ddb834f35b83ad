#include "api.h"
#include "chaos.h"
#include "jscan.h"
#include "subject.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_BYTES = 256 * 1024,
    HOSTILE_BYTES = 64,
    HOSTILE_ROUNDS = 8, /* messages of each kind, to each partition */
    OFFERS_MAX = 200,
    CURRENT_MS = 30000,
    EMPTY_MS = 4000, /* engines look at the streams that often */
    REMOVAL_MS = 60000
};

static uint32_t count_partitions(const struct chaos *chaos)
{
    return (uint32_t)strtoul(stack_sql(&chaos->stack, "SELECT count(*) FROM thole_default.partitions"), NULL,
                             10);
}

static void end_nothing(struct chaos *chaos, size_t target)
{
    (void)chaos;
    (void)target;
}

/* ---- replicas ---- */

static bool is_current(struct chaos *chaos, const char *stream)
{
    struct buf answer;
    thole_slice replicas, item, value;
    size_t at = 0;
    buf_init(&answer, ANSWER_BYTES);
    bool current = api_call(chaos->stage.connection, "STREAM.INFO", stream, THOLE_STR(""), &answer, NULL,
                            NULL) == THOLE_OK &&
                   json_path(buf_bytes(&answer), "cluster.replicas", &replicas);
    while (current && json_item(replicas, &at, &item))
        current = json_find(item, "current", &value) && json_is_true(value) &&
                  !(json_find(item, "offline", &value) && json_is_true(value)) &&
                  !json_find(item, "lag", &value);
    buf_release(&answer);
    return current;
}

static bool are_current(struct chaos *chaos, uint32_t partitions)
{
    char stream[64];
    bool all = is_current(chaos, "THOLE_default_WORK");
    for (uint32_t p = 0; p < partitions && all; p++) {
        (void)snprintf(stream, sizeof stream, "THOLE_default_HIST_%u", p);
        all = is_current(chaos, stream);
        (void)snprintf(stream, sizeof stream, "THOLE_default_IN_%u", p);
        all = all && is_current(chaos, stream);
    }
    return all;
}

void chaos_wait_current(struct chaos *chaos)
{
    uint32_t const partitions = count_partitions(chaos);
    uint64_t const end_ms = clock_monotonic_ms() + CURRENT_MS;
    while (!are_current(chaos, partitions))
        if (clock_monotonic_ms() >= end_ms) {
            fprintf(stderr, "    a replica stayed behind for %u s\n", CURRENT_MS / 1000);
            return;
        }
}

/* ---- streams, consumers and tables that are gone: the engines and workers make them again ---- */

static void remove_stream(struct chaos *chaos, size_t target)
{
    static const char *const names[] = {"THOLE_default_WORK", "KV_THOLE_default_NODES",
                                        "KV_THOLE_default_CRASHES", "THOLE_default_REJECTED"};
    (void)stage_break(&chaos->stage, WAY_REMOVE, names[target], NULL, NULL);
}

static void remove_readers(struct chaos *chaos, const char *stream)
{
    struct buf answer, none;
    thole_slice names, name;
    size_t at = 0;
    thole_error err = {0};
    buf_init(&answer, ANSWER_BYTES);
    buf_init(&none, ANSWER_BYTES);
    if (api_call(chaos->stage.connection, "CONSUMER.NAMES", stream, THOLE_STR(""), &answer, NULL, &err) ==
            THOLE_OK &&
        json_find(buf_bytes(&answer), "consumers", &names))
        while (json_item(names, &at, &name)) {
            char target[300];
            if (name.len < 2)
                continue;
            (void)snprintf(target, sizeof target, "%s.%.*s", stream, (int)name.len - 2, name.ptr + 1);
            if (api_call(chaos->stage.connection, "CONSUMER.DELETE", target, THOLE_STR(""), &none, NULL,
                         &err) != THOLE_OK)
                fprintf(stderr, "    %s: %s\n", target, err.text);
        }
    buf_release(&answer);
    buf_release(&none);
}

/* Target 0: those of the inboxes; 1: the queue's. */
static void remove_consumers(struct chaos *chaos, size_t target)
{
    uint32_t const partitions = count_partitions(chaos);
    if (target == 1)
        (void)stage_break(&chaos->stage, WAY_NO_QUEUE, "default", NULL, NULL);
    for (uint32_t p = 0; target == 0 && p < partitions; p++) {
        char stream[64];
        (void)snprintf(stream, sizeof stream, "THOLE_default_IN_%u", p);
        remove_readers(chaos, stream);
    }
}

/* The claims go with the rows. */
static void drop_table(struct chaos *chaos, size_t target)
{
    static const char *const tables[] = {"worker_queue", "timers", "instances", "executions"};
    char statement[100];
    chaos_note_end(chaos, 0);
    (void)snprintf(statement, sizeof statement, "DROP TABLE thole_default.%s CASCADE", tables[target]);
    (void)stack_sql(&chaos->stack, statement);
}

/* ---- a store of NATS that is not the right one, until the right one is mounted again ---- */

static void swap_stores(struct chaos *chaos, const char *from, const char *to)
{
    chaos_note_end(chaos, CHAOS_NATS_STORES);
    for (size_t i = 0; i < chaos->nats_len; i++)
        server_stop(&chaos->nats[i]);
    for (size_t i = 0; i < chaos->nats_len; i++)
        chaos_shell("cd '%s' && mkdir -p jetstream %s %s && rm -rf %s/* && "
                    "find jetstream -mindepth 1 -maxdepth 1 -exec mv -t %s {} + && "
                    "find %s -mindepth 1 -maxdepth 1 -exec mv -t jetstream {} +",
                    chaos->nats[i].dir, from, to, to, to, from);
    for (size_t i = 0; i < chaos->nats_len; i++)
        chaos_start_server(chaos, &chaos->nats[i]);
}

static void mount_empty_store(struct chaos *chaos, size_t target)
{
    (void)target;
    chaos->may_refuse = true;
    swap_stores(chaos, "nothing", "right");
    pause_ms(EMPTY_MS);
}

static void mount_right_store(struct chaos *chaos, size_t target)
{
    (void)target;
    swap_stores(chaos, "right", "wrong");
}

/* ---- messages that nobody can take ---- */

static void publish_hostile(struct chaos *chaos, uint32_t partition, thole_slice body)
{
    char subject[100];
    (void)snprintf(subject, sizeof subject, "thole.default.in.%u.start.order.hostile", partition);
    thole_error err = {0};
    if (connection_publish(chaos->stage.connection, subject, NULL, 0, body, &err) != THOLE_OK)
        fprintf(stderr, "    %s: %s\n", subject, err.text);
}

static void send_hostile(struct chaos *chaos, size_t target)
{
    static const char json[] = "{\"format\":1,\"instance\":\"aG9zdGlsZQ==\",\"start\":{\"orchestration\":"
                               "\"b3JkZXI=\",\"version\":2147483648}}";
    uint32_t const partitions = count_partitions(chaos);
    (void)target;
    for (uint32_t p = 0; p < partitions; p++)
        for (unsigned n = 0; n < HOSTILE_ROUNDS; n++) {
            uint8_t noise[HOSTILE_BYTES];
            for (size_t i = 0; i < sizeof noise; i++)
                noise[i] = (uint8_t)chaos_random(chaos, 256);
            publish_hostile(chaos, p, thole_slice_from(json));
            publish_hostile(chaos, p, (thole_slice){noise, sizeof noise});
        }
}

/* ---- more starts than the engines take, while one of them is killed ---- */

static void begin_burst(struct chaos *chaos, size_t target)
{
    atomic_store(&chaos->bursts, true);
    chaos_kill_program(chaos, target);
}

static void end_burst(struct chaos *chaos, size_t target)
{
    atomic_store(&chaos->bursts, false);
    chaos_start_program(chaos, target);
}

/* ---- the instances of the round before are removed, while engines are killed ---- */

struct chaos_removal {
    pthread_t thread;
    thole_client *client;
    unsigned left; /* number of those that could not be removed; of the thread until it is joined */
};

static struct {
    char ids[OFFERS_MAX][32];
    size_t len;
} offer;

void chaos_removal_offer(const char *id)
{
    if (offer.len < OFFERS_MAX)
        (void)snprintf(offer.ids[offer.len++], sizeof offer.ids[0], "%s", id);
}

static bool remove_instance(thole_client *removing, const char *id)
{
    thole_delete_options const options = {.size = sizeof options};
    thole_error err = {0};
    uint64_t const end = clock_monotonic_ms() + REMOVAL_MS;
    thole_status status;
    do
        status = thole_client_delete(removing, thole_slice_from(id), &options, NULL, &err);
    while (status == THOLE_UNAVAILABLE && clock_monotonic_ms() < end);
    if (status == THOLE_OK || status == THOLE_NOT_FOUND)
        return true;
    fprintf(stderr, "    %s is not removed: %s: %s\n", id, thole_status_name(status), err.text);
    return false;
}

static void *remove_offered(void *arg)
{
    struct chaos_removal *const removal = arg;
    for (size_t i = 0; i < offer.len; i++)
        removal->left += !remove_instance(removal->client, offer.ids[i]);
    return NULL;
}

static void begin_removal(struct chaos *chaos, size_t target)
{
    static struct chaos_removal removal;
    if (chaos->removal == NULL) {
        removal = (struct chaos_removal){.client = stack_client(&chaos->stack)};
        chaos_must(pthread_create(&removal.thread, NULL, remove_offered, &removal) == 0, "no thread", NULL);
        chaos->removal = &removal;
    }
    chaos_kill_program(chaos, target);
}

static void end_removal(struct chaos *chaos, size_t target)
{
    chaos_start_program(chaos, target);
}

static bool stands(const struct chaos *chaos, const char *id)
{
    char statement[400];
    (void)snprintf(statement, sizeof statement,
                   "SELECT (SELECT count(*) FROM thole_default.instances WHERE instance = '%s')"
                   " + (SELECT count(*) FROM thole_default.executions WHERE instance = '%s')",
                   id, id);
    return strcmp(stack_sql(&chaos->stack, statement), "0") != 0;
}

unsigned chaos_removal_check(struct chaos *chaos)
{
    struct chaos_removal *const removal = chaos->removal;
    unsigned bad = 0;
    if (removal != NULL) {
        (void)pthread_join(removal->thread, NULL);
        bad = removal->left;
        thole_client_close(removal->client);
        uint64_t const end = clock_monotonic_ms() + REMOVAL_MS;
        for (size_t i = 0; i < offer.len; i++) {
            while (stands(chaos, offer.ids[i]) && clock_monotonic_ms() < end)
                pause_ms(100);
            if (!stands(chaos, offer.ids[i]))
                continue;
            fprintf(stderr, "    %s was removed, and has rows\n", offer.ids[i]);
            bad++;
        }
        fprintf(stderr, "    %zu instances of the round before were removed\n", offer.len);
    }
    chaos->removal = NULL;
    offer.len = 0;
    return bad;
}

const struct chaos_fault chaos_store_faults[] = {
    {"a stream is removed", 4, remove_stream, end_nothing, NULL},
    {"consumers are removed", 2, remove_consumers, end_nothing, NULL},
    {"a table is dropped", 4, drop_table, end_nothing, NULL},
    {"an empty store of NATS", 1, mount_empty_store, mount_right_store, NULL},
    {"hostile messages", 1, send_hostile, end_nothing, NULL},
    {"a burst and a kill -9", 2, begin_burst, end_burst, NULL},
    {"removal and a kill -9", 2, begin_removal, end_removal, NULL},
};
const size_t chaos_store_faults_len = sizeof chaos_store_faults / sizeof chaos_store_faults[0];
