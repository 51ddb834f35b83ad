/* The streams and buckets of a namespace. */
#include "topology.h"
#include "api.h"
#include "batch.h"
#include "jscan.h"
#include "link.h"
#include "marked_store.h"
#include "message.h"
#include "reader.h"
#include "stream_specs.h"
#include "subject.h"
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { VALUE_BYTES_MAX = 64 };
#define ID_KEY "identity"

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

static thole_status topology_check_server(struct connection *connection, thole_error *reterr)
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

thole_status topology_read_id(struct connection *connection, const char *ns, struct namespace_id *ret,
                              thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX], subject[SPEC_SUBJECT_BYTES];
    uint64_t sequence = 0;
    struct buf body;
    (void)snprintf(stream, sizeof stream, "KV_THOLE_%s_CONFIG", ns);
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG." ID_KEY, ns);
    buf_init(&body, VALUE_BYTES_MAX);
    *ret = (struct namespace_id){.text = ""};
    thole_status status = stream_last_by_subject(connection, stream, subject, &sequence, &body, reterr);
    if (status == THOLE_OK && sequence != 0 && !namespace_id_read(buf_bytes(&body), ret))
        status = thole_fail(reterr, THOLE_CORRUPT,
                            "key " ID_KEY " of bucket THOLE_%s_CONFIG is \"%.*s\", but a UUID is needed: put "
                            "back what was there",
                            ns, THOLE_FMT(buf_bytes(&body)));
    buf_release(&body);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
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

/* The first engine of this version makes the id; an existing one counts. */
static thole_status ensure_id(struct connection *connection, const char *ns, struct namespace_id *ret,
                              thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    uint8_t random[16];
    THOLE_TRY(topology_read_id(connection, ns, ret, reterr));
    if (ret->text[0] != '\0')
        return THOLE_OK;
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no random bytes: %s", strerror(errno));
    struct namespace_id const id = namespace_id_make(random);
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG." ID_KEY, ns);
    THOLE_TRY(key_create(connection, subject, thole_slice_from(id.text), reterr));
    THOLE_TRY(topology_read_id(connection, ns, ret, reterr));
    if (ret->text[0] == '\0')
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s was written and is not there: try again", subject);
    return THOLE_OK;
}

/* Without its settings nothing of a namespace is to be made beside its histories. Another engine may make
 * both at this moment. */
static thole_status check_orphans(struct connection *connection, const char *ns, struct stream_spec *config,
                                  thole_error *reterr)
{
    char history[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds = {0};
    thole_status status = spec_verify(connection, config, reterr);
    if (status != THOLE_NOT_FOUND)
        return status;
    (void)snprintf(history, sizeof history, "THOLE_%s_HIST_0", ns);
    status = stream_bounds(connection, history, &bounds, reterr);
    if (status == THOLE_NOT_FOUND || (status == THOLE_OK && bounds.last == 0))
        return THOLE_OK;
    THOLE_TRY(status);
    status = spec_verify(connection, config, reterr);
    if (status != THOLE_NOT_FOUND)
        return status;
    return thole_fail(
        reterr, THOLE_CONFLICT,
        "bucket THOLE_%s_CONFIG is gone, and with it %s, but stream %s is there: nothing was made. "
        "Restore NATS's data, or, when that is not possible, thole recover",
        ns, part_loss(PART_CONFIG), history);
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
                                  struct topology *topology, bool *ret_made, thole_error *reterr)
{
    struct stream_spec spec = stream_spec_bucket(options->ns, "CONFIG", 0, options->replicas);
    uint64_t partitions, format;
    if (!options->accept_loss)
        THOLE_TRY(check_orphans(connection, options->ns, &spec, reterr));
    spec.replicas = options->replicas; /* the checks set it to the number found */
    THOLE_TRY(spec_ensure(connection, &spec, reterr));
    topology->replicas = spec.replicas;
    THOLE_TRY(config_get(connection, options->ns, "partitions", &partitions, reterr));
    if (partitions == 0)
        THOLE_TRY(config_create(connection, options->ns, "partitions",
                                options->partitions != 0 ? options->partitions : PARTITIONS_DEFAULT,
                                &partitions, reterr));
    THOLE_TRY(config_get(connection, options->ns, "format", &format, reterr));
    THOLE_TRY(check_config(options->ns, format, partitions, options->partitions, reterr));
    *ret_made = format != 0 && !options->accept_loss;
    topology->partitions = (uint32_t)partitions;
    THOLE_TRY(ensure_id(connection, options->ns, &topology->id, reterr));
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

/* The first engine makes the key; an existing one counts. */
static thole_status ensure_nonce_key(struct connection *connection, struct topology *topology, bool made,
                                     thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    struct stream_spec spec = stream_spec_bucket(topology->ns, "SECRET", 0, topology->replicas);
    bool there = false;
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_SECRET.nonces", topology->ns);
    THOLE_TRY(spec_ensure_part(connection, PART_SECRET, made, &spec, reterr));
    THOLE_TRY(get_nonce_key(connection, topology->ns, subject, &topology->nonce_key, &there, reterr));
    if (there)
        return THOLE_OK;
    if (part_judge(PART_SECRET, false, made) == PART_LOST)
        return thole_fail(
            reterr, THOLE_CONFLICT,
            "key nonces of bucket THOLE_%s_SECRET is gone, and with it %s: restore NATS's data, or, "
            "when that is not possible, thole recover",
            topology->ns, part_loss(PART_SECRET));
    THOLE_TRY(make_nonce_key(connection, subject, reterr));
    THOLE_TRY(get_nonce_key(connection, topology->ns, subject, &topology->nonce_key, &there, reterr));
    if (!there)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "%s was written and is not there: try again", subject);
    return THOLE_OK;
}

thole_status topology_keep_key(struct connection *connection, const struct topology *topology,
                               thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    struct stream_spec spec = stream_spec_bucket(topology->ns, "SECRET", 0, topology->replicas);
    struct nonce_key_text const text = nonce_key_write(&topology->nonce_key);
    struct nonce_key key;
    bool there = false;
    assert(topology->ensured);
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_SECRET.nonces", topology->ns);
    THOLE_TRY(spec_ensure(connection, &spec, reterr));
    THOLE_TRY(key_create(connection, subject, thole_slice_from(text.text), reterr));
    THOLE_TRY(get_nonce_key(connection, topology->ns, subject, &key, &there, reterr));
    if (!there || memcmp(key.bytes, topology->nonce_key.bytes, sizeof key.bytes) != 0)
        return thole_fail(reterr, THOLE_CONFLICT, "%s is another one than this engine has started with",
                          subject);
    return THOLE_OK;
}

/* An engine that did not ask for the stream uses an existing one. */
static thole_status ensure_events(struct connection *connection, const struct topology_options *options,
                                  struct topology *topology, thole_error *reterr)
{
    bool const asked = options->events_age_ms != 0;
    struct stream_spec spec =
        stream_spec_events(options->ns, options->events_age_ms, asked ? topology->replicas : 0);
    struct marked_store seen = {.verdict = STORE_NEVER};
    if (asked)
        THOLE_TRY(marked_store_look(connection, options->ns, STORE_EVENTS, &seen, reterr));
    thole_status status =
        asked ? spec_ensure(connection, &spec, reterr) : spec_verify(connection, &spec, reterr);
    topology->events_again = seen.verdict == STORE_GONE;
    if (asked && status == THOLE_OK)
        status = store_mark_made(connection, options->ns, STORE_EVENTS, 0, reterr);
    topology->events_stored = status == THOLE_OK;
    topology->events_age_ms = spec.max_age_ms;
    /* A user of an earlier version may not ask for it. */
    return status == THOLE_NOT_FOUND || (status == THOLE_DENIED && !asked) ? THOLE_OK : status;
}

struct store_set_up {
    struct connection *connection;
    const struct topology *topology;
    enum namespace_store store;
    pthread_t thread;
    bool begun; /* on a thread of its own */
    thole_status status;
    thole_error error;
};

static void set_up_store(struct store_set_up *set_up)
{
    set_up->status = marked_store_set_up(set_up->connection, set_up->topology->ns, set_up->store,
                                         set_up->topology->replicas, &set_up->error);
}

static void *set_up_store_main(void *arg)
{
    set_up_store(arg);
    nats_ReleaseThreadMemory();
    return NULL;
}

/* All at once: in a cluster each stream elects a leader first. */
thole_status topology_set_up_stores(struct connection *connection, const struct topology *topology,
                                    thole_error *reterr)
{
    static_assert(STORE_EVENTS == NAMESPACE_STORES - 1, "it is made where it is asked for");
    struct store_set_up all[STORE_EVENTS];
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < STORE_EVENTS; i++) {
        all[i] = (struct store_set_up){
            .connection = connection, .topology = topology, .store = (enum namespace_store)i};
        all[i].begun = pthread_create(&all[i].thread, NULL, set_up_store_main, &all[i]) == 0;
    }
    for (size_t i = 0; i < STORE_EVENTS; i++) {
        if (all[i].begun)
            (void)pthread_join(all[i].thread, NULL);
        else
            set_up_store(&all[i]);
        if (status == THOLE_OK && all[i].status != THOLE_OK)
            status = thole_fail(reterr, all[i].status, "%s", all[i].error.text);
    }
    return status;
}

static thole_status topology_check_options(const struct topology_options *options, thole_error *reterr)
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

static thole_status ensure_partitions(struct connection *connection, const struct topology *topology,
                                      bool made, thole_error *reterr)
{
    for (uint32_t p = 0; p < topology->partitions; p++) {
        struct stream_spec inbox = stream_spec_inbox(topology->ns, p, topology->replicas);
        struct stream_spec history = stream_spec_history(topology->ns, p, topology->replicas);
        THOLE_TRY(spec_ensure_part(connection, PART_INBOX, made, &inbox, reterr));
        THOLE_TRY(spec_ensure_part(connection, PART_HISTORY, made, &history, reterr));
    }
    return THOLE_OK;
}

static thole_status ensure_streams(struct connection *connection, const struct topology_options *options,
                                   struct topology *topology, bool made, thole_error *reterr)
{
    struct stream_spec nodes = stream_spec_bucket(
        options->ns, "NODES", options->nodes_ttl_ms != 0 ? options->nodes_ttl_ms : NODES_TTL_MS_DEFAULT,
        topology->replicas);
    nodes.keep_max_age = options->nodes_ttl_ms == 0;
    THOLE_TRY(spec_ensure_part(connection, PART_NODES, made, &nodes, reterr));
    topology->nodes_ttl_ms = nodes.max_age_ms;
    THOLE_TRY(ensure_nonce_key(connection, topology, made, reterr));
    struct stream_spec crashes = stream_spec_bucket(options->ns, "CRASHES", 0, topology->replicas);
    THOLE_TRY(spec_ensure_part(connection, PART_CRASHES, made, &crashes, reterr));
    struct stream_spec work = stream_spec_work(options->ns, topology->replicas);
    THOLE_TRY(spec_ensure_part(connection, PART_WORK, made, &work, reterr));
    struct stream_spec rejected = stream_spec_rejected(options->ns, topology->replicas);
    THOLE_TRY(spec_ensure_part(connection, PART_REJECTED, made, &rejected, reterr));
    THOLE_TRY(ensure_events(connection, options, topology, reterr));
    THOLE_TRY(topology_set_up_stores(connection, topology, reterr));
    return ensure_partitions(connection, topology, made, reterr);
}

thole_status topology_ensure(struct connection *connection, const struct topology_options *options,
                             struct topology *ret, thole_error *reterr)
{
    struct topology topology = {.partitions = 0};
    bool made = false;
    THOLE_TRY(topology_check_options(options, reterr));
    THOLE_TRY(topology_check_server(connection, reterr));
    (void)snprintf(topology.ns, sizeof topology.ns, "%s", options->ns);
    THOLE_TRY(ensure_config(connection, options, &topology, &made, reterr));
    THOLE_TRY(ensure_streams(connection, options, &topology, made, reterr));
    THOLE_TRY(finish_config(connection, topology.ns, reterr));
    topology.ensured = true;
    *ret = topology;
    return THOLE_OK;
}

/* ---- the present state ---- */

static thole_status look_stream(struct connection *connection, const char *ns, const char *kind, uint32_t p,
                                bool *ret_there, struct stream_bounds *ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    (void)snprintf(stream, sizeof stream, "THOLE_%s_%s_%u", ns, kind, p);
    thole_status const status = stream_bounds(connection, stream, ret, reterr);
    *ret_there = status == THOLE_OK;
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

/* Histories without settings: how many partitions there were. */
static thole_status look_for_orphans(struct connection *connection, const char *ns,
                                     struct topology_found *ret, thole_error *reterr)
{
    struct stream_bounds bounds;
    bool there = true;
    for (uint32_t p = 0; there && p < PARTITIONS_MAX; p++) {
        THOLE_TRY(look_stream(connection, ns, "HIST", p, &there, &bounds, reterr));
        ret->histories += there;
        ret->orphans |= there && bounds.last > 0;
    }
    return THOLE_OK;
}

thole_status topology_find(struct connection *connection, const char *ns, struct topology_found *ret,
                           thole_error *reterr)
{
    struct stream_spec config = stream_spec_bucket(ns, "CONFIG", 0, 0);
    struct nonce_key key;
    uint64_t format = 0, partitions = 0;
    memset(ret, 0, sizeof *ret);
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(topology_check_server(connection, reterr));
    thole_status status = spec_verify(connection, &config, reterr);
    if (status == THOLE_NOT_FOUND)
        return look_for_orphans(connection, ns, ret, reterr);
    THOLE_TRY(status);
    THOLE_TRY(config_get(connection, ns, "partitions", &partitions, reterr));
    THOLE_TRY(config_get(connection, ns, "format", &format, reterr));
    THOLE_TRY(topology_read_id(connection, ns, &ret->id, reterr));
    ret->partitions = partitions <= PARTITIONS_MAX ? (uint32_t)partitions : 0;
    ret->made = ret->partitions != 0 && format != 0;
    status = topology_read_key(connection, ns, &key, &ret->secret, reterr);
    if (status == THOLE_DENIED)
        ret->secret = true;
    return status == THOLE_DENIED || status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

/* *ret 0: the message is not there. */
static thole_status look_mark(struct connection *connection, const char *stream, uint64_t sequence,
                              uint64_t last, uint64_t *ret, thole_error *reterr)
{
    struct buf body;
    bool there = false;
    *ret = 0;
    if (sequence == 0 || sequence > last)
        return THOLE_OK;
    buf_init(&body, RECORD_BYTES_MAX);
    thole_status const status = stream_message(connection, stream, sequence, &there, &body, reterr);
    if (status == THOLE_OK && there)
        *ret = projected_mark(buf_bytes(&body));
    buf_release(&body);
    return status;
}

thole_status topology_look_log(struct connection *connection, const char *ns, uint32_t p,
                               const struct log_known *known, struct log_there *ret, thole_error *reterr)
{
    char stream[STREAM_NAME_BYTES_MAX];
    struct stream_bounds bounds = {0};
    *ret = (struct log_there){.there = false};
    THOLE_TRY(look_stream(connection, ns, "HIST", p, &ret->there, &bounds, reterr));
    ret->last = bounds.last;
    if (!ret->there || known == NULL)
        return THOLE_OK;
    (void)snprintf(stream, sizeof stream, "THOLE_%s_HIST_%u", ns, p);
    THOLE_TRY(look_mark(connection, stream, known->projected, bounds.last, &ret->projected_mark, reterr));
    return look_mark(connection, stream, known->kept, bounds.last, &ret->kept_mark, reterr);
}

thole_status topology_look_inbox(struct connection *connection, const char *ns, uint32_t p, bool *ret_there,
                                 thole_error *reterr)
{
    struct stream_bounds bounds;
    return look_stream(connection, ns, "IN", p, ret_there, &bounds, reterr);
}

/* Writes a key, whatever it was. */
static thole_status key_put(struct connection *connection, const char *ns, const char *key, thole_slice value,
                            thole_error *reterr)
{
    char subject[SPEC_SUBJECT_BYTES];
    struct buf answer;
    thole_slice error;
    (void)snprintf(subject, sizeof subject, "$KV.THOLE_%s_CONFIG.%s", ns, key);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = connection_request(connection, subject, value, &answer, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "error", &error))
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s", subject,
                            THOLE_FMT(error));
    buf_release(&answer);
    return status;
}

thole_status topology_write_id(struct connection *connection, const char *ns, const struct namespace_id *id,
                               thole_error *reterr)
{
    return key_put(connection, ns, ID_KEY, thole_slice_from(id->text), reterr);
}

thole_status topology_note_loss(struct connection *connection, const char *ns, uint64_t time_ms,
                                thole_slice value, thole_error *reterr)
{
    char key[40];
    (void)snprintf(key, sizeof key, "loss_%llu", (unsigned long long)time_ms);
    return key_put(connection, ns, key, value, reterr);
}

thole_status topology_read(struct connection *connection, const char *ns, struct topology *ret,
                           thole_error *reterr)
{
    struct topology topology = {.partitions = 0};
    uint64_t partitions, format;
    THOLE_TRY(name_check(thole_slice_from(ns), "namespace", reterr));
    THOLE_TRY(topology_check_server(connection, reterr));
    struct stream_spec config = stream_spec_bucket(ns, "CONFIG", 0, 0);
    struct stream_spec nodes = stream_spec_bucket(ns, "NODES", NODES_TTL_MS_DEFAULT, 0);
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

/* ---- settings read once, looked at again ---- */

static void key_differs(const struct topology *topology, enum defect_object object, enum defect_cure cure,
                        const char *key, const char *found, uint64_t needed, defect_fn *each, void *arg)
{
    const char *const bucket = object == DEFECT_SECRET ? "SECRET" : "CONFIG";
    struct defect defect = {.object = object, .weight = DEFECT_REFUSED, .cure = cure};
    (void)snprintf(defect.name, sizeof defect.name, "bucket THOLE_%s_%s", topology->ns, bucket);
    (void)snprintf(defect.field, sizeof defect.field, "key %s", key);
    (void)snprintf(defect.found, sizeof defect.found, "%s", found);
    if (object == DEFECT_SECRET) {
        (void)snprintf(defect.needed, sizeof defect.needed, "the value that the engines started with");
        (void)snprintf(defect.remedy, sizeof defect.remedy,
                       "put back the value of before, from a backup of the bucket, while the engines run: "
                       "results of activities carry proofs made with it");
    } else {
        (void)snprintf(defect.needed, sizeof defect.needed, "%llu", (unsigned long long)needed);
        (void)snprintf(defect.remedy, sizeof defect.remedy, "nats kv put THOLE_%s_CONFIG %s %llu",
                       topology->ns, key, (unsigned long long)needed);
    }
    each(arg, &defect);
}

static thole_status look_at_setting(struct connection *connection, const struct topology *topology,
                                    const char *key, uint64_t needed, defect_fn *each, void *arg,
                                    thole_error *reterr)
{
    char found[32] = "no value";
    uint64_t value = 0;
    thole_status const status = config_get(connection, topology->ns, key, &value, reterr);
    if (status != THOLE_OK && status != THOLE_CORRUPT)
        return status;
    if (status == THOLE_CORRUPT)
        (void)snprintf(found, sizeof found, "no number");
    else if (value != 0)
        (void)snprintf(found, sizeof found, "%llu", (unsigned long long)value);
    if (value != needed)
        key_differs(topology, DEFECT_CONFIG, CURE_NONE, key, found, needed, each, arg);
    return THOLE_OK;
}

static thole_status look_at_nonce_key(struct connection *connection, const struct topology *topology,
                                      defect_fn *each, void *arg, thole_error *reterr)
{
    struct nonce_key key;
    bool there = false;
    thole_status const status = topology_read_key(connection, topology->ns, &key, &there, reterr);
    if (status != THOLE_OK && status != THOLE_CORRUPT)
        return status;
    if (!there || status != THOLE_OK || memcmp(key.bytes, topology->nonce_key.bytes, sizeof key.bytes) != 0)
        key_differs(topology, DEFECT_SECRET, there ? CURE_NONE : CURE_ENGINE, "nonces",
                    there ? "another value" : "no value", 0, each, arg);
    return THOLE_OK;
}

thole_status topology_look_keys(struct connection *connection, const struct topology *topology,
                                defect_fn *each, void *arg, thole_error *reterr)
{
    struct {
        const char *key;
        uint64_t needed;
    } const settings[] = {{"partitions", topology->partitions},
                          {"format", CONFIG_FORMAT},
                          {"payload_max", topology->payload_max}};
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0] && status == THOLE_OK; i++)
        status =
            look_at_setting(connection, topology, settings[i].key, settings[i].needed, each, arg, reterr);
    if (status == THOLE_OK)
        status = look_at_nonce_key(connection, topology, each, arg, reterr);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status; /* the bucket's own defect */
}
