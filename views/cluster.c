#include "cluster.h"
#include "client_internal.h"
#include "clock.h"
#include "event.h"
#include "jscan.h"
#include "json_check.h"
#include "message.h"
#include "overview.h"
#include "reader.h"
#include "subject.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CLUSTER_BYTES_MAX = 64 * 1024 * 1024,
    HEARTBEAT_ARENA_MAX = 64 * 1024 * 1024,
    TOLD_TEXT_MAX = 4096,
    TOLD_BYTES_MAX = 1024 * 1024
};

/* ---- engines ---- */

static bool is_before(thole_slice a, thole_slice b)
{
    int const order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order != 0 ? order < 0 : a.len < b.len;
}

static thole_status cluster_keep(struct cluster *cluster, const struct heartbeat *heartbeat, uint64_t age_ms)
{
    struct cluster_engine **at = &cluster->engines;
    struct cluster_engine *const engine = arena_alloc(&cluster->arena, sizeof *engine);
    if (engine == NULL)
        return THOLE_NOMEM;
    *engine = (struct cluster_engine){.started_ms = heartbeat->started_ms,
                                      .heartbeat_ms = age_ms,
                                      .orchestrations_len = heartbeat->orchestrations_len,
                                      .reads_all = heartbeat->reads_ranges && heartbeat->reads_references &&
                                                   heartbeat->reads_lists};
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
        status = cluster_keep(arg, &heartbeat, age_ms);
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

static thole_status cluster_take_epoch(struct cluster *cluster, uint32_t p, thole_slice bytes,
                                       thole_error *reterr)
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
        status = cluster_take_epoch(cluster, p, buf_bytes(&body), reterr);
    buf_release(&stream);
    buf_release(&subject);
    buf_release(&body);
    return status;
}

/* ---- the engines' reports ---- */

const char *const cluster_states[CLUSTER_CLOSING + 1] = {NULL, "closed", "opening", "open", "closing"};

static thole_slice told_text(struct cluster *cluster, thole_slice object, const char *key)
{
    thole_slice value, kept = {NULL, 0};
    struct buf text;
    buf_init(&text, TOLD_TEXT_MAX);
    if (json_find(object, key, &value) && json_text(value, &text) &&
        arena_dup(&cluster->arena, buf_bytes(&text), &kept) != THOLE_OK)
        kept = (thole_slice){NULL, 0};
    buf_release(&text);
    return kept;
}

static uint64_t told_number(thole_slice object, const char *key)
{
    thole_slice value;
    uint64_t n = 0;
    return json_find(object, key, &value) && json_uint(value, &n) ? n : 0;
}

static enum cluster_state told_state(thole_slice object)
{
    thole_slice value;
    for (int state = CLUSTER_CLOSED; json_find(object, "state", &value) && state <= CLUSTER_CLOSING; state++)
        if (json_text_is(value, cluster_states[state]))
            return (enum cluster_state)state;
    return CLUSTER_UNTOLD;
}

static struct cluster_limited *limited_find(const struct cluster *cluster, thole_slice limit,
                                            thole_slice orchestration)
{
    struct cluster_limited *limited = cluster->limited;
    while (limited != NULL && !(thole_slice_equal(limited->limit, limit) &&
                                thole_slice_equal(limited->orchestration, orchestration)))
        limited = limited->next;
    return limited;
}

/* In another partition it was another instance: one of them is an example. */
static void take_limited(struct cluster *cluster, thole_slice object)
{
    thole_slice const limit = told_text(cluster, object, "limit"),
                      orchestration = told_text(cluster, object, "orchestration");
    struct cluster_limited *limited = limited_find(cluster, limit, orchestration);
    if (limited == NULL) {
        limited = arena_alloc(&cluster->arena, sizeof *limited);
        if (limited == NULL)
            return;
        *limited = (struct cluster_limited){.next = cluster->limited,
                                            .limit = limit,
                                            .orchestration = orchestration,
                                            .text = told_text(cluster, object, "text"),
                                            .remedy = told_text(cluster, object, "remedy"),
                                            .instance = told_text(cluster, object, "instance")};
        cluster->limited = limited;
    }
    limited->count += told_number(object, "count");
}

/* Of two engines that say something of it, while it moves, the one counts that has it open. Who has it open
 * owns it, whatever the clocks said when it was opened and when the engine was started. */
static void take_partition(struct cluster *cluster, const struct cluster_engine *engine, thole_slice object)
{
    uint64_t const p = told_number(object, "partition");
    if (p >= cluster->partitions_len)
        return;
    struct cluster_partition *const to = &cluster->partitions[p];
    thole_slice list, item;
    size_t at = 0;
    if (json_find(object, "limited", &list))
        while (json_item(list, &at, &item))
            take_limited(cluster, item);
    to->closed_lately += told_number(object, "closed_lately");
    if (to->state == CLUSTER_OPEN)
        return;
    to->state = told_state(object);
    to->since_ms = told_number(object, "since_ms");
    to->cause = told_text(cluster, object, "cause");
    to->why = told_text(cluster, object, "text");
    to->owned |= to->state == CLUSTER_OPEN && thole_slice_equal(to->last, engine->node);
}

static void take_defect(struct cluster *cluster, thole_slice object)
{
    struct cluster_defect *const defect = arena_alloc(&cluster->arena, sizeof *defect);
    thole_slice warns;
    if (defect == NULL)
        return;
    *defect = (struct cluster_defect){.next = cluster->defects,
                                      .text = told_text(cluster, object, "text"),
                                      .remedy = told_text(cluster, object, "remedy"),
                                      .object = told_text(cluster, object, "object"),
                                      .warns = json_find(object, "warns", &warns) && json_is_true(warns)};
    cluster->defects = defect;
}

static void take_mended(struct cluster *cluster, thole_slice object)
{
    struct cluster_mended *const mended = arena_alloc(&cluster->arena, sizeof *mended);
    if (mended == NULL)
        return;
    *mended = (struct cluster_mended){.next = cluster->mended,
                                      .object = told_text(cluster, object, "object"),
                                      .name = told_text(cluster, object, "name"),
                                      .at_ms = told_number(object, "at_ms")};
    cluster->mended = mended;
}

static void take_room(struct cluster *cluster, struct cluster_room ***last, thole_slice object)
{
    struct cluster_room *const room = arena_alloc(&cluster->arena, sizeof *room);
    if (room == NULL)
        return;
    *room = (struct cluster_room){.what = told_text(cluster, object, "what"),
                                  .streams = told_number(object, "streams"),
                                  .messages = told_number(object, "messages"),
                                  .forecast = {.from_ms = 1,
                                               .at_ms = 1 + told_number(object, "span_ms"),
                                               .from_bytes = told_number(object, "from_bytes"),
                                               .bytes = told_number(object, "bytes"),
                                               .bytes_max = told_number(object, "bytes_max")}};
    **last = room;
    *last = &room->next;
}

/* One engine looks; of another that did so before, what it says is left out. */
static void take_rooms(struct cluster *cluster, thole_slice list)
{
    struct cluster_room **last = &cluster->room;
    thole_slice item;
    size_t at = 0;
    if (cluster->room != NULL)
        return;
    while (json_item(list, &at, &item))
        take_room(cluster, &last, item);
}

static void take_told(struct cluster *cluster, struct cluster_engine *engine, thole_slice answer)
{
    thole_slice list, item;
    size_t at = 0;
    if (json_check(answer, NULL) != THOLE_OK)
        return;
    engine->now_ms = told_number(answer, "now_ms");
    engine->told = engine->now_ms != 0;
    if (json_find(answer, "partitions", &list))
        while (json_item(list, &at, &item))
            take_partition(cluster, engine, item);
    at = 0;
    if (json_find(answer, "defects", &list))
        while (json_item(list, &at, &item))
            take_defect(cluster, item);
    at = 0;
    if (json_find(answer, "mended", &list))
        while (json_item(list, &at, &item))
            take_mended(cluster, item);
    if (json_find(answer, "room", &list))
        take_rooms(cluster, list);
}

/* An engine that does not answer is of an older version, frozen, or gone: it says nothing. Who may not ask
 * gets no answer, either, and asks no other. */
static void cluster_ask_engines(struct cluster *cluster, struct connection *connection, const char *ns)
{
    thole_status status = THOLE_OK;
    for (struct cluster_engine *e = cluster->engines; e != NULL && status != THOLE_DENIED; e = e->next) {
        char subject[2 * THOLE_NAME_BYTES_MAX + 40];
        struct buf answer;
        if (name_check(e->node, "node", NULL) != THOLE_OK)
            continue;
        (void)snprintf(subject, sizeof subject, "thole.%s.engines.%.*s.state", ns, THOLE_FMT(e->node));
        buf_init(&answer, TOLD_BYTES_MAX);
        e->asked_ms = clock_wall_ms();
        status = connection_request(connection, subject, THOLE_STR(""), &answer, NULL);
        e->answered_ms = clock_wall_ms();
        if (status == THOLE_OK)
            take_told(cluster, e, buf_bytes(&answer));
        buf_release(&answer);
    }
}

/* ---- the lag of partitions ---- */

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

/* A last record that changes no row is projected with the next one. */
static uint64_t cluster_unprojected(const struct record *last, uint64_t sequence, uint64_t watermark)
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
        to->inbox_lag = position_open(&record.position, waiting_to);
        to->projection_lag = cluster_unprojected(&record, sequence, watermark);
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
    thole_status status = overview_heartbeats(connection, ns, on_heartbeat, cluster, reterr);
    if (status != THOLE_OK && status != THOLE_NOT_FOUND) /* no bucket: nobody has a heartbeat */
        return status;
    for (; cluster->partitions_len < partitions; cluster->partitions_len++) {
        status = read_partition(cluster, connection, ns, cluster->partitions_len, reterr);
        if (status != THOLE_OK && status != THOLE_NOT_FOUND) /* no stream: nobody owns it */
            return status;
    }
    cluster_ask_engines(cluster, connection, ns);
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
