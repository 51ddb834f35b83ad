#include "cluster.h"
#include "client_internal.h"
#include "event.h"
#include "message.h"
#include "overview.h"
#include "reader.h"
#include "subject.h"
#include <inttypes.h>
#include <string.h>

enum { CLUSTER_BYTES_MAX = 64 * 1024 * 1024, HEARTBEAT_ARENA_MAX = 64 * 1024 * 1024 };

/* ---- engines ---- */

static bool is_before(thole_slice a, thole_slice b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order < 0 : a.len < b.len;
}

static thole_status keep(struct cluster *cluster, const struct heartbeat *heartbeat, uint64_t age_ms)
{
    struct cluster_engine **at = &cluster->engines;
    struct cluster_engine *const engine = arena_alloc(&cluster->arena, sizeof *engine);
    if (engine == NULL)
        return THOLE_NOMEM;
    *engine = (struct cluster_engine){.started_ms = heartbeat->started_ms,
                                      .heartbeat_ms = age_ms,
                                      .orchestrations_len = heartbeat->orchestrations_len};
    THOLE_TRY(arena_dup(&cluster->arena, heartbeat->node, &engine->node));
    while (*at != NULL && is_before((*at)->node, engine->node))
        at = &(*at)->next;
    engine->next = *at;
    *at = engine;
    cluster->engines_len++;
    return THOLE_OK;
}

static thole_status on_heartbeat(void *arg, thole_slice bytes, uint64_t age_ms)
{
    struct heartbeat heartbeat;
    struct arena arena;
    arena_init(&arena, HEARTBEAT_ARENA_MAX);
    thole_status status = THOLE_OK; /* an unreadable one is of a newer engine */
    if (heartbeat_decode(bytes, &arena, &heartbeat, NULL) == THOLE_OK)
        status = keep(arg, &heartbeat, age_ms);
    arena_release(&arena);
    return status;
}

static const struct cluster_engine *find_engine(const struct cluster *cluster, thole_slice node)
{
    const struct cluster_engine *engine = cluster->engines;
    while (engine != NULL && !thole_slice_equal(engine->node, node))
        engine = engine->next;
    return engine;
}

/* ---- partitions ---- */

static thole_status take_epoch(struct cluster *cluster, uint32_t p, thole_slice bytes, thole_error *reterr)
{
    struct cluster_partition *const partition = &cluster->partitions[p];
    struct record record;
    struct arena arena;
    arena_init(&arena, CLUSTER_BYTES_MAX);
    thole_status status = record_decode(bytes, &arena, &record, reterr);
    if (status == THOLE_OK && record.kind == RECORD_EPOCH_OPENED) {
        partition->epoch = record.epoch;
        partition->opened_ms = record.time_ms;
        status = arena_dup(&cluster->arena, record.node, &partition->last);
    }
    arena_release(&arena);
    const struct cluster_engine *const engine = find_engine(cluster, partition->last);
    partition->owned = engine != NULL && engine->started_ms <= partition->opened_ms;
    return status;
}

static thole_status read_partition(struct cluster *cluster, struct connection *connection, const char *ns,
                                   uint32_t p, thole_error *reterr)
{
    uint64_t sequence = 0;
    struct buf stream, subject, body;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status status = stream_name(&stream, ns, "HIST", p, reterr);
    if (status == THOLE_OK)
        status = subject_control(&subject, ns, p, "epoch", reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(connection, buf_cstr(&stream), buf_cstr(&subject), &sequence, &body,
                                        reterr);
    if (status == THOLE_OK && sequence > 0)
        status = take_epoch(cluster, p, buf_bytes(&body), reterr);
    buf_release(&stream);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/* ---- what they are behind by ---- */

static thole_status inbox_last(struct thole_client *client, uint32_t p, uint64_t *ret, thole_error *reterr)
{
    struct stream_bounds bounds = {.last = 0};
    struct buf stream;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    thole_status status = stream_name(&stream, client->topology.ns, "IN", p, reterr);
    if (status == THOLE_OK)
        status = stream_bounds(client->connection, buf_cstr(&stream), &bounds, reterr);
    *ret = bounds.last;
    buf_release(&stream);
    return status;
}

static thole_status log_last(struct thole_client *client, uint32_t p, uint64_t *ret_sequence,
                             struct buf *ret_body, thole_error *reterr)
{
    struct buf stream;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    thole_status status = stream_name(&stream, client->topology.ns, "HIST", p, reterr);
    if (status == THOLE_OK)
        status = stream_last_by_subject(client->connection, buf_cstr(&stream), "thole.>", ret_sequence,
                                        ret_body, reterr);
    buf_release(&stream);
    return status;
}

/* Messages of the inbox up to @p last that the position does not have. */
static uint64_t behind(const struct position *position, uint64_t last)
{
    uint64_t above = 0;
    for (size_t i = 0; i < position->above_len; i++)
        above += position->above[i] <= last;
    return last > position->floor + above ? last - position->floor - above : 0;
}

/* A last record that changes no row is projected with the next one. */
static uint64_t unprojected(const struct record *last, uint64_t sequence, uint64_t watermark)
{
    if (last->kind == RECORD_EPOCH_OPENED || last->kind == RECORD_POSITION)
        sequence--;
    return sequence > watermark ? sequence - watermark : 0;
}

/* The inbox is read first: what the log has by then can only be more. */
static thole_status read_lag(struct thole_client *client, uint32_t p, struct cluster_partition *to,
                             thole_error *reterr)
{
    uint64_t waiting_to = 0, sequence = 0, watermark = 0;
    struct record record = {.kind = RECORD_UNKNOWN};
    struct arena arena;
    struct buf body;
    buf_init(&body, RECORD_BYTES_MAX);
    arena_init(&arena, CLUSTER_BYTES_MAX);
    thole_status status = inbox_last(client, p, &waiting_to, reterr);
    if (status == THOLE_OK)
        status = client_read_watermark(client, p, &watermark, reterr);
    if (status == THOLE_OK)
        status = log_last(client, p, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence > 0)
        status = record_decode(buf_bytes(&body), &arena, &record, reterr);
    if (status == THOLE_OK) {
        to->lag_known = true;
        to->inbox_lag = behind(&record.position, waiting_to);
        to->projection_lag = unprojected(&record, sequence, watermark);
    }
    buf_release(&body);
    arena_release(&arena);
    return status;
}

thole_status cluster_read_lags(struct cluster *cluster, struct thole_client *client, thole_error *reterr)
{
    for (uint32_t p = 0; p < cluster->partitions_len; p++)
        THOLE_TRY(read_lag(client, p, &cluster->partitions[p], reterr));
    return THOLE_OK;
}

thole_status cluster_read(struct cluster *cluster, struct connection *connection, const char *ns,
                          uint32_t partitions, thole_error *reterr)
{
    memset(cluster, 0, sizeof *cluster);
    arena_init(&cluster->arena, CLUSTER_BYTES_MAX);
    cluster->partitions = arena_array(&cluster->arena, partitions + 1, sizeof *cluster->partitions);
    if (cluster->partitions == NULL)
        return thole_fail(reterr, THOLE_NOMEM, "no memory for the list of partitions");
    memset(cluster->partitions, 0, (partitions + 1) * sizeof *cluster->partitions);
    THOLE_TRY(overview_heartbeats(connection, ns, on_heartbeat, cluster, reterr));
    for (; cluster->partitions_len < partitions; cluster->partitions_len++)
        THOLE_TRY(read_partition(cluster, connection, ns, cluster->partitions_len, reterr));
    return THOLE_OK;
}

void cluster_release(struct cluster *cluster)
{
    arena_release(&cluster->arena);
}

void cluster_shares(const struct cluster *cluster, thole_slice node, struct buf *to, size_t *ret_len)
{
    uint32_t begin = 0, count = 0;
    *ret_len = 0;
    for (uint32_t p = 0; p <= cluster->partitions_len; p++) { /* one more, which nobody owns, ends the last */
        const struct cluster_partition *const partition = &cluster->partitions[p];
        if (p < cluster->partitions_len && partition->owned && thole_slice_equal(partition->last, node)) {
            begin = count++ == 0 ? p : begin;
            continue;
        }
        if (count > 0)
            buf_printf(to, *ret_len == 0 ? "%" PRIu32 : ",%" PRIu32, begin);
        if (count > 1)
            buf_printf(to, "-%" PRIu32, begin + count - 1);
        *ret_len += count;
        count = 0;
    }
}
