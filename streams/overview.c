#include "overview.h"
#include "api.h"
#include "jscan.h"
#include "message.h"
#include "reader.h"
#include "subject.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SETTING_BYTES_MAX = 64, NAMES_BYTES_MAX = 16 * 1024 * 1024, NANOS_PER_MILLI = 1000000 };

static const char bucket_begin[] = "KV_THOLE_", bucket_end[] = "_CONFIG";

/* ---- one namespace ---- */

/* 0: it is not there, or no number. */
static thole_status overview_setting(struct connection *connection, const char *ns, const char *key,
                                     uint64_t *ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[STREAM_NAME_BYTES_MAX + SETTING_BYTES_MAX];
    uint64_t sequence = 0;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", ns);
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG.%s", ns, key);
    buf_init(&body, SETTING_BYTES_MAX);
    thole_status const status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status != THOLE_OK || sequence == 0 || !json_uint(buf_bytes(&body), ret))
        *ret = 0;
    buf_release(&body);
    return status;
}

/* Counts replicas that are offline or lag. */
static uint64_t count_offline(thole_slice answer)
{
    thole_slice replicas, item, value;
    size_t at = 0;
    uint64_t n = 0;
    if (json_path(answer, "cluster.replicas", &replicas))
        while (json_item(replicas, &at, &item))
            n += (json_find(item, "offline", &value) && json_is_true(value)) ||
                 !(json_find(item, "current", &value) && json_is_true(value));
    return n;
}

/* The bucket's replicas, and the server's clock, which is in each answer about a stream. */
static thole_status overview_look_at_bucket(struct connection *connection, const char *stream,
                                            struct overview_namespace *ret, thole_error *reterr)
{
    struct buf answer;
    thole_slice value, now;
    uint64_t ns = 0;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "STREAM.INFO", stream, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK &&
        !(json_path(buf_bytes(&answer), "config.num_replicas", &value) && json_uint(value, &ret->replicas) &&
          json_find(buf_bytes(&answer), "ts", &now) && json_time_ns(now, &ns)))
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "stream %s: the server's answer has no replicas or no time", stream);
    ret->now_ms = ns / NANOS_PER_MILLI;
    ret->clustered = status == THOLE_OK && json_path(buf_bytes(&answer), "cluster.name", &value);
    ret->offline = status == THOLE_OK ? count_offline(buf_bytes(&answer)) : 0;
    buf_release(&answer);
    return status;
}

thole_status overview_namespace(struct connection *connection, const char *ns, struct overview_namespace *ret,
                                thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    memset(ret, 0, sizeof *ret);
    (void)snprintf(ret->ns, sizeof ret->ns, "%s", ns);
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", ns);
    THOLE_TRY(overview_look_at_bucket(connection, stream, ret, reterr));
    THOLE_TRY(overview_setting(connection, ns, "partitions", &ret->partitions, reterr));
    THOLE_TRY(overview_setting(connection, ns, "payload_max", &ret->payload_max, reterr));
    return overview_setting(connection, ns, "format", &ret->format, reterr);
}

/* ---- the account and the server ---- */

/* 0: it is not there, or -1, which is no limit. */
static uint64_t number_at(thole_slice answer, const char *path)
{
    thole_slice value;
    uint64_t n = 0;
    return json_path(answer, path, &value) && json_uint(value, &n) ? n : 0;
}

static uint64_t number_in(thole_slice said, const char *tier, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "%s%s", tier, name);
    return number_at(said, path);
}

static uint64_t limit_of_copies(uint64_t limit, uint64_t copies)
{
    return limit <= UINT64_MAX / copies ? limit * copies : UINT64_MAX;
}

/* nats-server (limitsExceeded() in jetstream.go) compares the bytes of all replicas with the limit of a tier
 * times the replicas, and with the limit of an account without tiers as it is. */
struct overview_room overview_account_room(thole_slice said, uint64_t replicas)
{
    char tier[40] = "";
    thole_slice tiers;
    uint64_t copies = 1;
    if (json_find(said, "tiers", &tiers) && replicas > 0) {
        (void)snprintf(tier, sizeof tier, "tiers.R%" PRIu64 ".", replicas);
        copies = replicas;
    }
    return (struct overview_room){
        .file_bytes = number_in(said, tier, "storage"),
        .file_bytes_max = limit_of_copies(number_in(said, tier, "limits.max_storage"), copies),
        .memory_bytes = number_in(said, tier, "memory"),
        .memory_bytes_max = limit_of_copies(number_in(said, tier, "limits.max_memory"), copies)};
}

thole_status overview_account(struct connection *connection, uint64_t replicas, struct overview_room *ret,
                              thole_error *reterr)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status = api_call(connection, "INFO", "", THOLE_STR(""), &answer, NULL, reterr);
    *ret = overview_account_room(status == THOLE_OK ? buf_bytes(&answer) : (thole_slice){NULL, 0}, replicas);
    buf_release(&answer);
    return status;
}

thole_status overview_server(struct connection *connection, struct overview_server *ret, thole_error *reterr)
{
    struct buf answer;
    thole_slice value;
    uint64_t ns = 0;
    buf_init(&answer, API_ANSWER_MAX);
    *ret = (struct overview_server){.servers = 0};
    thole_status status =
        connection_request(connection, "$SYS.REQ.SERVER.PING.JSZ", THOLE_STR(""), &answer, reterr);
    if (status == THOLE_OK &&
        !(json_path(buf_bytes(&answer), "data.config.sync_interval", &value) && json_uint(value, &ns)))
        status = thole_fail(reterr, THOLE_CORRUPT, "the server does not say its sync_interval");
    ret->sync_ms = ns / NANOS_PER_MILLI;
    ret->sync_always =
        json_path(buf_bytes(&answer), "data.config.sync_always", &value) && json_is_true(value);
    if (json_path(buf_bytes(&answer), "data.meta_cluster.cluster_size", &value))
        (void)json_uint(value, &ret->servers);
    ret->room =
        (struct overview_room){.file_bytes = number_at(buf_bytes(&answer), "data.storage"),
                               .file_bytes_max = number_at(buf_bytes(&answer), "data.config.max_storage"),
                               .memory_bytes = number_at(buf_bytes(&answer), "data.memory"),
                               .memory_bytes_max = number_at(buf_bytes(&answer), "data.config.max_memory")};
    buf_release(&answer);
    return status;
}

/* ---- all namespaces ---- */

struct names { /* of namespaces, THOLE_NAME_BYTES_MAX + 1 bytes each */
    struct buf items;
};

static void keep_name(struct names *names, thole_slice stream)
{
    char name[THOLE_NAME_BYTES_MAX + 1] = {0};
    size_t const begin = sizeof bucket_begin - 1, end = sizeof bucket_end - 1;
    if (stream.len <= begin + end || stream.len - begin - end > THOLE_NAME_BYTES_MAX ||
        memcmp(stream.ptr, bucket_begin, begin) != 0 ||
        memcmp(stream.ptr + stream.len - end, bucket_end, end) != 0)
        return;
    memcpy(name, stream.ptr + begin, stream.len - begin - end);
    if (name_check(thole_slice_from(name), "namespace", NULL) == THOLE_OK)
        buf_append(&names->items, name, sizeof name);
}

static void overview_take_stream(void *arg, thole_slice item)
{
    struct names *const names = arg;
    struct buf text;
    buf_init(&text, STREAM_NAME_BYTES_MAX * 4);
    if (json_text(item, &text))
        keep_name(names, buf_bytes(&text));
    buf_release(&text);
}

static int overview_by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

thole_status overview_namespaces(struct connection *connection, overview_namespace_fn *each, void *arg,
                                 thole_error *reterr)
{
    enum { ITEM = THOLE_NAME_BYTES_MAX + 1 };
    struct names names;
    buf_init(&names.items, NAMES_BYTES_MAX);
    thole_status status =
        api_list(connection, "STREAM.NAMES", "", "streams", overview_take_stream, &names, reterr);
    if (status == THOLE_OK && buf_status(&names.items) != THOLE_OK)
        status = thole_fail(reterr, buf_status(&names.items), "no memory for the names of namespaces");
    if (status == THOLE_OK && names.items.len > 0)
        qsort(names.items.ptr, names.items.len / ITEM, ITEM, overview_by_name);
    for (size_t at = 0; status == THOLE_OK && at < names.items.len; at += ITEM) {
        struct overview_namespace found;
        status = overview_namespace(connection, (const char *)names.items.ptr + at, &found, reterr);
        status = status == THOLE_OK          ? each(arg, &found)
                 : status == THOLE_NOT_FOUND ? THOLE_OK /* removed meanwhile */
                                             : status;
    }
    buf_release(&names.items);
    return status;
}

/* ---- heartbeats ---- */

/* The next one from @p from on; *ret_sequence 0: there is none. */
static thole_status next_heartbeat(struct connection *connection, const char *stream, uint64_t from,
                                   struct buf *answer, struct buf *heartbeat, uint64_t *ret_sequence,
                                   uint64_t *ret_stored_ms, thole_error *reterr)
{
    struct api_body body;
    thole_slice time;
    uint32_t code = 0;
    uint64_t ns = 0;
    api_body_begin(&body);
    json_member_number(&body.json, "seq", from);
    json_member_text(&body.json, "next_by_subj", ">");
    thole_status status =
        api_call(connection, "STREAM.MSG.GET", stream, api_body_end(&body), answer, &code, reterr);
    if (status == THOLE_OK || (status == THOLE_NOT_FOUND && code == API_MESSAGE_NOT_FOUND))
        status = stream_get_answer(buf_bytes(answer), ret_sequence, heartbeat, reterr);
    if (status == THOLE_OK && *ret_sequence > 0 &&
        !(json_path(buf_bytes(answer), "message.time", &time) && json_time_ns(time, &ns)))
        status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: a heartbeat has no time", stream);
    *ret_stored_ms = ns / NANOS_PER_MILLI;
    return status;
}

thole_status overview_heartbeats(struct connection *connection, const char *ns, overview_heartbeat_fn *each,
                                 void *arg, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct overview_namespace bucket;
    uint64_t stored_ms, sequence = 0;
    struct buf answer, heartbeat;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_NODES", ns);
    THOLE_TRY(overview_look_at_bucket(connection, stream, &bucket, reterr));
    buf_init(&answer, API_ANSWER_MAX);
    buf_init(&heartbeat, API_ANSWER_MAX);
    thole_status status;
    do {
        uint64_t const from = sequence + 1;
        status = next_heartbeat(connection, stream, from, &answer, &heartbeat, &sequence, &stored_ms, reterr);
        if (status == THOLE_OK && sequence != 0 && sequence < from)
            status = thole_fail(reterr, THOLE_CORRUPT, "stream %s: the server goes back", stream);
        else if (status == THOLE_OK && sequence != 0 && heartbeat.len > 0) /* empty: the node has left */
            status =
                each(arg, buf_bytes(&heartbeat), bucket.now_ms > stored_ms ? bucket.now_ms - stored_ms : 0);
    } while (status == THOLE_OK && sequence != 0);
    buf_release(&answer);
    buf_release(&heartbeat);
    return status;
}
