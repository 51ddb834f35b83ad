/* The streams and buckets of a namespace. */
#include "topology.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "message.h"
#include "reader.h"
#include "subject.h"
#include "topology_spec.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { VALUE_BYTES_MAX = 64, DEDUPE_MS = 120000 };
enum {
    REJECTED_MSGS_MAX = 10000,
    REJECTED_BYTES_MAX = 32 * 1024 * 1024,
    REJECTED_AGE_MS = 7 * 24 * 3600 * 1000
};

static struct stream_spec inbox_spec(const char *ns, uint32_t p, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it takes the messages to instances",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 2,
                               .add_subjects = true,
                               .dedupe_ms = DEDUPE_MS};
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_IN_%u", ns, p);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.in.%u.*.*.*", ns, p);
    (void)snprintf(spec.subjects[1], sizeof spec.subjects[1], "thole.%s.in.%u.*.*.*.by.*", ns, p);
    return spec;
}

static struct stream_spec history_spec(const char *ns, uint32_t p, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it is the history and must never lose a message to a limit",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 2,
                               .no_limits = true,
                               .deny_purge = true};
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_HIST_%u", ns, p);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.hist.%u.*.*", ns, p);
    (void)snprintf(spec.subjects[1], sizeof spec.subjects[1], "thole.%s.ctl.%u.*", ns, p);
    return spec;
}

static struct stream_spec work_spec(const char *ns, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it holds each activity until a worker has done it",
                               .retention = "workqueue",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .lift_max_per_subject = true,
                               .deny_purge = true};
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_WORK", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.work.>", ns);
    return spec;
}

/* Its limits are the operator's choice, but it must have limits. */
static struct stream_spec rejected_spec(const char *ns, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it keeps the newest messages that could not be taken",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .dedupe_ms = DEDUPE_MS,
                               .max_age_ms = REJECTED_AGE_MS,
                               .keep_max_age = true,
                               .max_msgs = REJECTED_MSGS_MAX,
                               .max_bytes = REJECTED_BYTES_MAX,
                               .discard_old = true};
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_REJECTED", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.rejected.*", ns);
    return spec;
}

/* Its limits are the operator's choice: for how long, and whether a full stream drops the oldest events or
 * makes engines wait. */
static struct stream_spec events_spec(const char *ns, uint64_t age_ms, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it keeps the CloudEvents of instances",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .dedupe_ms = age_ms > 0 && age_ms < DEDUPE_MS ? age_ms : DEDUPE_MS,
                               .max_age_ms = age_ms,
                               .any_max_age = age_ms == 0,
                               .any_discard = true,
                               .discard_old = true};
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_EVENTS", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.event.*.*.ce.>", ns);
    return spec;
}

/* A key-value bucket, as every NATS client understands it. */
static struct stream_spec bucket_spec(const char *ns, const char *kind, uint64_t ttl_ms, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it is a key-value bucket",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .max_age_ms = ttl_ms,
                               .dedupe_ms = ttl_ms > 0 && ttl_ms < DEDUPE_MS ? ttl_ms : DEDUPE_MS,
                               .max_per_subject = 1,
                               .deny_delete = true,
                               .allow_rollup = true};
    (void)snprintf(spec.name, sizeof spec.name, "KV_THOLE_%s_%s", ns, kind);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "$KV.THOLE_%s_%s.>", ns, kind);
    return spec;
}

/* ---- the server ---- */

/* Whether "a.b.c…" is at least major.minor.patch. False for an invalid version. */
static bool version_at_least(thole_slice version, const unsigned least[3])
{
    size_t at = 0;
    for (size_t part = 0; part < 3; part++) {
        unsigned n = 0;
        size_t digits = 0;
        for (; at < version.len && version.ptr[at] >= '0' && version.ptr[at] <= '9' && digits < 6;
             at++, digits++)
            n = n * 10 + (unsigned)(version.ptr[at] - '0');
        if (digits == 0)
            return false;
        if (n != least[part])
            return n > least[part];
        if (part < 2 && (at >= version.len || version.ptr[at++] != '.'))
            return false;
    }
    return true;
}

thole_status topology_check_version(struct connection *connection, thole_error *reterr)
{
    static const unsigned least[3] = {2, 10, 23};
    thole_slice const version = connection_server_version(connection);
    if (!version_at_least(version, least))
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "nats-server is version %.*s, but 2.10.23 or newer is needed (older ones lose "
                          "deletes and acknowledgements in a crash): upgrade the server",
                          THOLE_FMT(version));
    return THOLE_OK;
}

thole_status topology_check_jetstream(struct connection *connection, thole_error *reterr)
{
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = api_call(connection, "INFO", "", THOLE_STR(""), &answer, NULL, reterr);
    buf_release(&answer);
    if (status == THOLE_UNAVAILABLE && connection_epoch(connection) != 0 &&
        !connection_has_jetstream(connection))
        status = THOLE_UNSUPPORTED;
    if (status == THOLE_UNSUPPORTED)
        return thole_fail(reterr, status,
                          "JetStream is off at the NATS server or for this account: start nats-server with "
                          "--jetstream, or enable it for the account");
    return status;
}

static thole_status check_server(struct connection *connection, thole_error *reterr)
{
    THOLE_TRY(topology_check_version(connection, reterr));
    return topology_check_jetstream(connection, reterr);
}

/* ---- CONFIG ---- */

/* A number in the CONFIG bucket; *ret 0 when the key is not there. */
static thole_status config_get(struct connection *connection, const char *ns, const char *key, uint64_t *ret,
                               thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[SPEC_SUBJECT_BYTES];
    uint64_t sequence;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", ns);
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG.%s", ns, key);
    buf_init(&body, VALUE_BYTES_MAX);
    *ret = 0;
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence != 0 && (!json_uint(buf_bytes(&body), ret) || *ret == 0))
        status =
            thole_fail(reterr, THOLE_CORRUPT,
                       "key %s of bucket THOLE_%s_CONFIG is \"%.*s\", but a positive number is needed: put "
                       "back what was there",
                       key, ns, THOLE_FMT(buf_bytes(&body)));
    buf_release(&body);
    return status;
}

/* Writes the value of a bucket's key unless there is one. */
static thole_status key_create(struct connection *connection, const char *subject, thole_slice value,
                               thole_error *reterr)
{
    struct buf answer;
    thole_slice error;
    struct header const create = {"Nats-Expected-Last-Subject-Sequence", THOLE_STR("0")};
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = connection_request_with(connection, subject, &create, 1, value, &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &error) && !api_is_wrong_last(error))
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                            THOLE_FMT(error));
    buf_release(&answer);
    return status;
}

/* Writes the key unless it exists, then reads the value that counts. */
static thole_status config_create(struct connection *connection, const char *ns, const char *key,
                                  uint64_t value, uint64_t *ret, thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES], text[24];
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG.%s", ns, key);
    (void)snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    THOLE_TRY(key_create(connection, subject, thole_slice_from(text), reterr));
    THOLE_TRY(config_get(connection, ns, key, ret, reterr));
    if (*ret == 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s was written and is not there: try again", subject);
    return THOLE_OK;
}

static thole_status check_config(const char *ns, uint64_t format, uint64_t partitions, uint32_t wanted,
                                 thole_error *reterr)
{
    if (format != 0 && format < CONFIG_FORMAT)
        return thole_fail(
            reterr, THOLE_UNSUPPORTED,
            "namespace %s has format %llu, this program knows %d, whose subjects are others: let "
            "its instances end under the version of thole that made it, and use another namespace "
            "for new ones",
            ns, (unsigned long long)format, CONFIG_FORMAT);
    if (format > CONFIG_FORMAT)
        return thole_fail(reterr, THOLE_UNSUPPORTED,
                          "namespace %s has format %llu, this program knows %d: upgrade this program", ns,
                          (unsigned long long)format, CONFIG_FORMAT);
    if (partitions > PARTITIONS_MAX)
        return thole_fail(reterr, THOLE_CORRUPT, "namespace %s has %llu partitions, at most %d are possible",
                          ns, (unsigned long long)partitions, PARTITIONS_MAX);
    if (wanted != 0 && wanted != partitions)
        return thole_fail(reterr, THOLE_INVALID,
                          "namespace %s has %llu partitions, %u were asked for: the number is fixed when the "
                          "namespace is made; leave --partitions away, or use another namespace",
                          ns, (unsigned long long)partitions, wanted);
    return THOLE_OK;
}

/* An orchestration's decisions may depend on it: an output above it fails. */
thole_status topology_check_payload(const struct topology *topology, uint64_t wanted, thole_error *reterr)
{
    if (topology->payload_max > MESSAGE_BYTES_MAX / 2)
        return thole_fail(
            reterr, THOLE_CORRUPT,
            "key payload_max of bucket THOLE_%s_CONFIG is %llu, at most %d are possible: put back "
            "what was there",
            topology->ns, (unsigned long long)topology->payload_max, MESSAGE_BYTES_MAX / 2);
    if (wanted != 0 && wanted != topology->payload_max)
        return thole_fail(
            reterr, THOLE_INVALID,
            "namespace %s has payloads of at most %llu bytes, %llu were asked for: the limit is "
            "fixed when the namespace is made; leave --payload-max away, or use another namespace",
            topology->ns, (unsigned long long)topology->payload_max, (unsigned long long)wanted);
    return THOLE_OK;
}

static thole_status ensure_payload(struct connection *connection, const struct topology_options *options,
                                   struct topology *topology, thole_error *reterr)
{
    uint64_t const first = options->payload_max != 0 ? options->payload_max : THOLE_PAYLOAD_BYTES_DEFAULT;
    THOLE_TRY(config_get(connection, options->ns, "payload_max", &topology->payload_max, reterr));
    if (topology->payload_max == 0)
        THOLE_TRY(
            config_create(connection, options->ns, "payload_max", first, &topology->payload_max, reterr));
    return topology_check_payload(topology, options->payload_max, reterr);
}

/* The bucket, how many partitions there are and how large a payload may be; the key format comes last of all
 * (see finish_config()). The bucket's replicas count for the other streams when none were asked for. */
static thole_status ensure_config(struct connection *connection, const struct topology_options *options,
                                  struct topology *topology, thole_error *reterr)
{
    struct stream_spec spec = bucket_spec(options->ns, "CONFIG", 0, options->replicas);
    uint64_t partitions, format;
    THOLE_TRY(spec_ensure(connection, &spec, reterr));
    topology->replicas = spec.replicas;
    THOLE_TRY(config_get(connection, options->ns, "partitions", &partitions, reterr));
    if (partitions == 0)
        THOLE_TRY(config_create(connection, options->ns, "partitions",
                                options->partitions != 0 ? options->partitions : PARTITIONS_DEFAULT,
                                &partitions, reterr));
    THOLE_TRY(config_get(connection, options->ns, "format", &format, reterr));
    THOLE_TRY(check_config(options->ns, format, partitions, options->partitions, reterr));
    topology->partitions = (uint32_t)partitions;
    return ensure_payload(connection, options, topology, reterr);
}

/* Marks the namespace as complete: before that, topology_read() does not find it. */
static thole_status finish_config(struct connection *connection, const char *ns, thole_error *reterr)
{
    uint64_t format;
    THOLE_TRY(config_get(connection, ns, "format", &format, reterr));
    return format != 0 ? THOLE_OK : config_create(connection, ns, "format", CONFIG_FORMAT, &format, reterr);
}

/* ---- the key of nonces, in a bucket that only engines need to read ---- */

/* *ret_there false: there is none. */
static thole_status get_nonce_key(struct connection *connection, const char *ns, const char *subject,
                                  struct nonce_key *ret, bool *ret_there, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    uint64_t sequence = 0;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_SECRET", ns);
    buf_init(&body, 4 * NONCE_KEY_BYTES);
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    *ret_there = status == THOLE_OK && sequence != 0;
    if (*ret_there && !nonce_key_read(buf_bytes(&body), ret))
        status =
            thole_fail(reterr, THOLE_CORRUPT,
                       "key nonces of bucket THOLE_%s_SECRET is not %d hexadecimal digits: put back what "
                       "was there",
                       ns, 2 * NONCE_KEY_BYTES);
    buf_release(&body);
    return status;
}

static thole_status make_nonce_key(struct connection *connection, const char *subject, thole_error *reterr)
{
    struct nonce_key key;
    if (getrandom(key.bytes, sizeof key.bytes, 0) != (ssize_t)sizeof key.bytes)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    struct nonce_key_text const text = nonce_key_write(&key);
    return key_create(connection, subject, thole_slice_from(text.text), reterr);
}

thole_status topology_read_key(struct connection *connection, const char *ns, struct nonce_key *ret,
                               bool *ret_there, thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_SECRET.nonces", ns);
    return get_nonce_key(connection, ns, subject, ret, ret_there, reterr);
}

/* The first engine makes it; what is there counts. */
static thole_status ensure_nonce_key(struct connection *connection, struct topology *topology,
                                     thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    struct stream_spec spec = bucket_spec(topology->ns, "SECRET", 0, topology->replicas);
    bool there = false;
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_SECRET.nonces", topology->ns);
    THOLE_TRY(spec_ensure(connection, &spec, reterr));
    THOLE_TRY(get_nonce_key(connection, topology->ns, subject, &topology->nonce_key, &there, reterr));
    if (there)
        return THOLE_OK;
    THOLE_TRY(make_nonce_key(connection, subject, reterr));
    THOLE_TRY(get_nonce_key(connection, topology->ns, subject, &topology->nonce_key, &there, reterr));
    if (!there)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s was written and is not there: try again", subject);
    return THOLE_OK;
}

/* Who did not ask for it uses it where it is there. */
static thole_status ensure_events(struct connection *connection, const struct topology_options *options,
                                  struct topology *topology, thole_error *reterr)
{
    bool const asked = options->events_age_ms != 0;
    struct stream_spec spec =
        events_spec(options->ns, options->events_age_ms, asked ? topology->replicas : 0);
    thole_status const status =
        asked ? spec_ensure(connection, &spec, reterr) : spec_verify(connection, &spec, reterr);
    topology->events_stored = status == THOLE_OK;
    /* A user of an earlier version may not ask for it. */
    return status == THOLE_NOT_FOUND || (status == THOLE_DENIED && !asked) ? THOLE_OK : status;
}

static thole_status check_options(const struct topology_options *options, thole_error *reterr)
{
    THOLE_TRY(name_check(thole_slice_from(options->ns), "namespace", reterr));
    if (options->partitions > PARTITIONS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "%u partitions were asked for, at most %d are possible",
                          options->partitions, PARTITIONS_MAX);
    if (options->replicas != 0 && options->replicas != 1 && options->replicas != 3 && options->replicas != 5)
        return thole_fail(reterr, THOLE_INVALID, "%u replicas were asked for, possible are 1, 3 and 5",
                          options->replicas);
    if (options->nodes_ttl_ms != 0 && options->nodes_ttl_ms < 1000)
        return thole_fail(reterr, THOLE_INVALID,
                          "the nodes' time to live is %llu ms, at least 1000 are needed",
                          (unsigned long long)options->nodes_ttl_ms);
    return THOLE_OK;
}

static thole_status ensure_streams(struct connection *connection, const struct topology_options *options,
                                   struct topology *topology, thole_error *reterr)
{
    struct stream_spec nodes = bucket_spec(
        options->ns, "NODES", options->nodes_ttl_ms != 0 ? options->nodes_ttl_ms : NODES_TTL_MS_DEFAULT,
        topology->replicas);
    nodes.keep_max_age = options->nodes_ttl_ms == 0;
    THOLE_TRY(spec_ensure(connection, &nodes, reterr));
    topology->nodes_ttl_ms = nodes.max_age_ms;
    THOLE_TRY(ensure_nonce_key(connection, topology, reterr));
    struct stream_spec crashes = bucket_spec(options->ns, "CRASHES", 0, topology->replicas);
    THOLE_TRY(spec_ensure(connection, &crashes, reterr));
    struct stream_spec work = work_spec(options->ns, topology->replicas);
    THOLE_TRY(spec_ensure(connection, &work, reterr));
    struct stream_spec rejected = rejected_spec(options->ns, topology->replicas);
    THOLE_TRY(spec_ensure(connection, &rejected, reterr));
    THOLE_TRY(ensure_events(connection, options, topology, reterr));
    for (uint32_t p = 0; p < topology->partitions; p++) {
        struct stream_spec inbox = inbox_spec(options->ns, p, topology->replicas);
        struct stream_spec history = history_spec(options->ns, p, topology->replicas);
        THOLE_TRY(spec_ensure(connection, &inbox, reterr));
        THOLE_TRY(spec_ensure(connection, &history, reterr));
    }
    return THOLE_OK;
}

thole_status topology_ensure(struct connection *connection, const struct topology_options *options,
                             struct topology *ret, thole_error *reterr)
{
    struct topology topology = {.partitions = 0};
    THOLE_TRY(check_options(options, reterr));
    THOLE_TRY(check_server(connection, reterr));
    (void)snprintf(topology.ns, sizeof topology.ns, "%s", options->ns);
    THOLE_TRY(ensure_config(connection, options, &topology, reterr));
    THOLE_TRY(ensure_streams(connection, options, &topology, reterr));
    THOLE_TRY(finish_config(connection, topology.ns, reterr));
    *ret = topology;
    return THOLE_OK;
}

thole_status topology_read(struct connection *connection, const char *ns, struct topology *ret,
                           thole_error *reterr)
{
    struct topology topology = {.partitions = 0};
    uint64_t partitions, format;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(check_server(connection, reterr));
    struct stream_spec config = bucket_spec(ns, "CONFIG", 0, 0);
    struct stream_spec nodes = bucket_spec(ns, "NODES", NODES_TTL_MS_DEFAULT, 0);
    nodes.keep_max_age = true;
    thole_status status = spec_verify(connection, &config, reterr);
    if (status == THOLE_OK)
        status = config_get(connection, ns, "partitions", &partitions, reterr);
    if (status == THOLE_OK)
        status = config_get(connection, ns, "format", &format, reterr);
    if (status == THOLE_OK && partitions != 0 && format != 0)
        status = spec_verify(connection, &nodes, reterr);
    if (status == THOLE_NOT_FOUND || (status == THOLE_OK && (partitions == 0 || format == 0)))
        return thole_fail(
            reterr, THOLE_NOT_FOUND,
            "namespace %s has not been set up yet: start an engine for it first, or check --namespace", ns);
    THOLE_TRY(status);
    THOLE_TRY(check_config(ns, format, partitions, 0, reterr));
    THOLE_TRY(config_get(connection, ns, "payload_max", &topology.payload_max, reterr));
    if (topology.payload_max == 0) /* set up by a version without this key, and no engine has started since */
        topology.payload_max = THOLE_PAYLOAD_BYTES_DEFAULT;
    (void)snprintf(topology.ns, sizeof topology.ns, "%s", ns);
    THOLE_TRY(topology_check_payload(&topology, 0, reterr));
    topology.partitions = (uint32_t)partitions;
    topology.replicas = config.replicas;
    topology.nodes_ttl_ms = nodes.max_age_ms;
    *ret = topology;
    return THOLE_OK;
}
