#include "histories.h"
#include "reader.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMEOUT_MS = 10000, RECORD_ARENA_BYTES = 64 * 1024 * 1024 };

bool histories_open(struct histories *ret)
{
    thole_error error = {.status = THOLE_OK};
    const char *const ns = getenv("THOLE_NAMESPACE");
    struct connection_options const options = {.url = getenv("THOLE_NATS_URL"),
                                               .name = "bench",
                                               .connect_timeout_ms = TIMEOUT_MS,
                                               .request_timeout_ms = TIMEOUT_MS};
    memset(ret, 0, sizeof *ret);
    if (connection_open(&options, &ret->connection, &error) != THOLE_OK ||
        topology_read(ret->connection, ns == NULL ? "default" : ns, &ret->topology, &error) != THOLE_OK)
        return bench_fail("histories", error.text);
    return ret->topology.partitions <= HISTORIES_PARTITIONS_MAX
               ? true
               : bench_fail("histories", "too many partitions");
}

void histories_close(struct histories *histories)
{
    connection_close(histories->connection);
    histories->connection = NULL;
}

static bool find_bounds(struct histories *histories, uint32_t p, char stream[128], struct stream_bounds *ret)
{
    thole_error error = {.status = THOLE_OK};
    (void)snprintf(stream, 128, "THOLE_%s_HIST_%" PRIu32, histories->topology.ns, p);
    return stream_bounds(histories->connection, stream, ret, &error) == THOLE_OK
               ? true
               : bench_fail("histories", error.text);
}

bool histories_skip(struct histories *histories)
{
    for (uint32_t p = 0; p < histories->topology.partitions; p++) {
        char stream[128];
        struct stream_bounds bounds;
        if (!find_bounds(histories, p, stream, &bounds))
            return false;
        histories->read_to[p] = bounds.last;
    }
    return true;
}

struct reading {
    histories_fn *each;
    void *arg;
    uint32_t partition;
};

static thole_status on_record(void *arg, uint64_t sequence, const struct delivery *delivery)
{
    const struct reading *const reading = arg;
    struct arena arena;
    struct record record;
    (void)sequence;
    arena_init(&arena, RECORD_ARENA_BYTES);
    if (record_decode(delivery->body, &arena, &record, NULL) == THOLE_OK)
        reading->each(reading->arg, reading->partition, delivery_stored_ns(delivery), &record);
    arena_release(&arena);
    return THOLE_OK;
}

bool histories_read(struct histories *histories, histories_fn *each, void *arg)
{
    thole_error error = {.status = THOLE_OK};
    for (uint32_t p = 0; p < histories->topology.partitions; p++) {
        char stream[128];
        struct stream_bounds bounds;
        struct reading reading = {each, arg, p};
        if (!find_bounds(histories, p, stream, &bounds))
            return false;
        if (bounds.last > histories->read_to[p] &&
            stream_read_deliveries(histories->connection, stream, NULL, histories->read_to[p] + 1,
                                   bounds.last, on_record, &reading, &error) != THOLE_OK)
            return bench_fail(stream, error.text);
        histories->read_to[p] = bounds.last;
    }
    return true;
}

bool histories_number(thole_slice instance, const char *prefix, uint64_t *ret)
{
    char text[128];
    char *end;
    size_t const len = strlen(prefix);
    if (instance.len <= len || instance.len >= sizeof text || memcmp(instance.ptr, prefix, len) != 0)
        return false;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(instance));
    *ret = strtoull(text + len, &end, 10);
    return *end == '\0';
}
