/* Looks at the streams, buckets and consumers of a namespace, and mends them. */
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "marked_store.h"
#include "stream_specs.h"
#include "topology.h"
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { QUEUE_NAME_BYTES = 400 };

/* Without the setting for how long heartbeats are kept, any present value counts. */
static struct stream_spec nodes_spec(const struct topology *topology)
{
    bool const known = topology->nodes_ttl_ms != 0;
    struct stream_spec spec = stream_spec_bucket(
        topology->ns, "NODES", known ? topology->nodes_ttl_ms : NODES_TTL_MS_DEFAULT, topology->replicas);
    spec.keep_max_age = !known;
    return spec;
}

static struct stream_spec spec_of(const struct topology *topology, enum defect_object object, uint32_t p)
{
    const char *const ns = topology->ns;
    uint32_t const replicas = topology->replicas;
    switch (object) {
    case DEFECT_NODES: return nodes_spec(topology);
    case DEFECT_SECRET: return stream_spec_bucket(ns, "SECRET", 0, replicas);
    case DEFECT_CRASHES: return stream_spec_bucket(ns, "CRASHES", 0, replicas);
    case DEFECT_WORK: return stream_spec_work(ns, replicas);
    case DEFECT_REJECTED: return stream_spec_rejected(ns, replicas);
    case DEFECT_EVENTS: return stream_spec_events(ns, topology->events_age_ms, replicas);
    case DEFECT_IN: return stream_spec_inbox(ns, p, replicas);
    case DEFECT_HIST: return stream_spec_history(ns, p, replicas);
    case DEFECT_HOLDS: return stream_spec_store(ns, STORE_HOLDS, replicas);
    case DEFECT_BINDINGS: return stream_spec_store(ns, STORE_BINDINGS, replicas);
    case DEFECT_AUDIT: return stream_spec_store(ns, STORE_AUDIT, 0); /* any number */
    case DEFECT_RESTORED: return stream_spec_store(ns, STORE_RESTORED, replicas);
    case DEFECT_CONFIG:
    case DEFECT_QUEUE:
    case DEFECT_TABLES:
    case DEFECT_LIMITS:
    case DEFECT_OBJECTS: break;
    }
    return stream_spec_bucket(ns, "CONFIG", 0, 0);
}

/* ---- streams ---- */

struct looking {
    struct connection *connection;
    const struct topology *topology;
    struct topology_seen *seen;
    defect_fn *each;
    void *arg;
};

static uint64_t topology_look_number_of(thole_slice answer, const char *path)
{
    thole_slice value;
    uint64_t n = 0;
    return json_path(answer, path, &value) && json_uint(value, &n) ? n : 0;
}

/* Both below 2^63, as the server's numbers are. */
static bool limit_is_fuller(const struct topology_limit *a, const struct topology_limit *b)
{
    return (double)a->bytes / (double)a->bytes_max > (double)b->bytes / (double)b->bytes_max;
}

static void take_limit(struct topology_seen *seen, const struct topology_limit *limit)
{
    size_t at = seen->limits_len;
    if (at < TOPOLOGY_LIMITS_MAX)
        seen->limits_len++;
    else if (!limit_is_fuller(limit, &seen->limits[--at]))
        return;
    for (; at > 0 && limit_is_fuller(limit, &seen->limits[at - 1]); at--)
        seen->limits[at] = seen->limits[at - 1];
    seen->limits[at] = *limit;
}

static void take_usage(struct topology_seen *seen, const struct stream_spec *spec, thole_slice answer)
{
    struct topology_usage *const usage = &seen->kinds[spec->object];
    thole_slice value;
    uint64_t created_ns = 0;
    struct topology_limit limit = {.bytes = topology_look_number_of(answer, "state.bytes"),
                                   .bytes_max = topology_look_number_of(answer, "config.max_bytes")};
    bool const refuses =
        json_path(answer, "config.discard", &value) && !thole_slice_equal(value, THOLE_STR("\"old\""));
    if (json_find(answer, "created", &value) && json_time_ns(value, &created_ns))
        limit.created_ms = created_ns / NANOS_PER_MS;
    (void)snprintf(limit.name, sizeof limit.name, "%s", spec->name);
    usage->streams++;
    usage->bytes += limit.bytes;
    usage->messages += topology_look_number_of(answer, "state.messages");
    if (limit.created_ms != 0 && (usage->created_ms == 0 || limit.created_ms < usage->created_ms))
        usage->created_ms = limit.created_ms;
    if (limit.bytes_max > 0 && refuses)
        take_limit(seen, &limit);
}

static void take_seen(struct topology_seen *seen, const struct stream_spec *spec, thole_slice answer)
{
    thole_slice value;
    uint64_t n = 0;
    seen->looked++;
    take_usage(seen, spec, answer);
    if (json_find(answer, "ts", &value) && json_time_ns(value, &n))
        seen->now_ms = n / NANOS_PER_MS;
    if (spec->object == DEFECT_WORK && json_find(answer, "created", &value) && json_time_ns(value, &n))
        seen->work_created_ns = n;
}

static thole_status topology_look_at_stream(const struct looking *looking, const struct stream_spec *spec,
                                            thole_error *reterr)
{
    struct buf answer;
    thole_slice config;
    struct defect missing;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status =
        api_call(looking->connection, "STREAM.INFO", spec->name, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK && json_find(buf_bytes(&answer), "config", &config)) {
        take_seen(looking->seen, spec, buf_bytes(&answer));
        spec_compare(spec, config, looking->each, looking->arg);
        spec_compare_peers(spec, buf_bytes(&answer), looking->each, looking->arg);
    } else if (status == THOLE_OK) {
        status =
            thole_fail(reterr, THOLE_CORRUPT, "stream %s: the server's answer has no config", spec->name);
    } else if (status == THOLE_DENIED) {
        looking->seen->hidden++;
        status = THOLE_OK;
    } else if (status == THOLE_NOT_FOUND) {
        looking->seen->looked++;
        spec_missing(spec, &missing);
        if (spec->object != DEFECT_EVENTS ||
            looking->topology->events_stored) /* else no engine asked for it */
            looking->each(looking->arg, &missing);
        status = THOLE_OK;
    }
    buf_release(&answer);
    return status;
}

/* A request that is not allowed is answered by nothing: after the first one no other is sent. */
thole_status topology_look(struct connection *connection, const struct topology *topology,
                           struct topology_seen *ret, defect_fn *each, void *arg, thole_error *reterr)
{
    struct looking const looking = {connection, topology, ret, each, arg};
    *ret = (struct topology_seen){.looked = 0};
    for (int object = 0; object <= DEFECT_HIST; object++) {
        bool const many = object == DEFECT_IN || object == DEFECT_HIST;
        bool const needed = object == DEFECT_EVENTS   ? topology->events_stored
                            : object == DEFECT_SECRET ? topology->ensured /* others may not see it */
                                                      : true;
        for (uint32_t p = 0; needed && p < (many ? topology->partitions : 1); p++) {
            struct stream_spec const spec = spec_of(topology, (enum defect_object)object, p);
            if (ret->hidden > 0)
                ret->hidden++;
            else
                THOLE_TRY(topology_look_at_stream(&looking, &spec, reterr));
        }
    }
    return THOLE_OK;
}

thole_status topology_work_created(struct connection *connection, const char *ns, uint64_t *ret_ns,
                                   thole_error *reterr)
{
    struct stream_spec const spec = stream_spec_work(ns, 0);
    struct topology_seen seen = {.looked = 0};
    struct buf answer;
    buf_init(&answer, API_ANSWER_MAX);
    thole_status const status =
        api_call(connection, "STREAM.INFO", spec.name, THOLE_STR(""), &answer, NULL, reterr);
    if (status == THOLE_OK)
        take_seen(&seen, &spec, buf_bytes(&answer));
    buf_release(&answer);
    *ret_ns = seen.work_created_ns;
    return status == THOLE_NOT_FOUND ? THOLE_OK : status;
}

/* ---- the stores that not every namespace has ---- */

static const enum defect_object store_objects[NAMESPACE_STORES] = {[STORE_HOLDS] = DEFECT_HOLDS,
                                                                   [STORE_BINDINGS] = DEFECT_BINDINGS,
                                                                   [STORE_AUDIT] = DEFECT_AUDIT,
                                                                   [STORE_RESTORED] = DEFECT_RESTORED,
                                                                   [STORE_EVENTS] = DEFECT_EVENTS};

static void marked_store_differs(const struct stream_spec *spec, enum namespace_store store,
                                 const struct marked_store *seen, struct defect *ret)
{
    spec_missing(spec, ret);
    ret->cure = CURE_NONE;
    if (seen->verdict == STORE_OLDER) {
        (void)snprintf(ret->field, sizeof ret->field, "last message");
        (void)snprintf(ret->found, sizeof ret->found, "%" PRIu64, seen->last);
        (void)snprintf(ret->needed, sizeof ret->needed, "%" PRIu64 " or a later one", seen->mark.last);
    }
    if (store == STORE_EVENTS)
        (void)snprintf(
            ret->remedy, sizeof ret->remedy,
            "start the engines with --events-age, which makes it again; or, when no events are to be "
            "stored any more, thole recover -n %s",
            spec->ns);
    else
        (void)snprintf(
            ret->remedy, sizeof ret->remedy,
            "nats stream restore DIR, where DIR is a backup of %s; or give it up: thole recover -n %s",
            spec->name, spec->ns);
}

/* Of BINDINGS and HOLDS people write a little, and all of it counts; the others are long. */
static thole_status marked_store_note(struct connection *connection, const char *ns,
                                      enum namespace_store store, const struct marked_store *seen,
                                      thole_error *reterr)
{
    bool const counts = store == STORE_HOLDS || store == STORE_BINDINGS;
    if (seen->verdict != STORE_UNMARKED && !(seen->verdict == STORE_FITS && counts))
        return THOLE_OK;
    return store_mark_made(connection, ns, store, counts ? seen->last : 0, reterr);
}

static thole_status look_at_marked_store(const struct looking *looking, enum namespace_store store,
                                         thole_error *reterr)
{
    const struct topology *const topology = looking->topology;
    struct stream_spec const spec = spec_of(topology, store_objects[store], 0);
    struct marked_store seen;
    struct defect defect;
    THOLE_TRY(marked_store_look(looking->connection, topology->ns, store, &seen, reterr));
    if (store_is_lost(seen.verdict) && !(store == STORE_EVENTS && topology->events_stored)) {
        marked_store_differs(&spec, store, &seen, &defect);
        looking->each(looking->arg, &defect);
    }
    if (seen.verdict == STORE_NEVER || seen.verdict == STORE_GONE)
        return THOLE_OK;
    if (topology->ensured) /* an engine's */
        THOLE_TRY(marked_store_note(looking->connection, topology->ns, store, &seen, reterr));
    return store == STORE_EVENTS
               ? THOLE_OK
               : topology_look_at_stream(looking, &spec, reterr); /* an engine knows its age */
}

thole_status topology_look_stores(struct connection *connection, const struct topology *topology,
                                  struct topology_seen *seen, defect_fn *each, void *arg, thole_error *reterr)
{
    struct looking const looking = {connection, topology, seen, each, arg};
    for (int store = 0; store < NAMESPACE_STORES; store++)
        THOLE_TRY(look_at_marked_store(&looking, (enum namespace_store)store, reterr));
    return THOLE_OK;
}

/* ---- consumers of queues ---- */

static void topology_look_at_queue(void *arg, thole_slice info)
{
    const struct looking *const looking = arg;
    thole_slice name;
    struct buf text;
    buf_init(&text, QUEUE_NAME_BYTES);
    if (json_find(info, "name", &name) && json_text(name, &text) && text.len > 2 &&
        memcmp(text.ptr, "q_", 2) == 0)
        topology_compare_queue(looking->topology->ns, (thole_slice){text.ptr + 2, text.len - 2}, info,
                               looking->each, looking->arg);
    buf_release(&text);
}

thole_status topology_look_queues(struct connection *connection, const struct topology *topology,
                                  defect_fn *each, void *arg, thole_error *reterr)
{
    struct looking looking = {connection, topology, NULL, each, arg};
    struct stream_spec const spec = stream_spec_work(topology->ns, 0);
    thole_status const status = api_list(connection, "CONSUMER.LIST", spec.name, "consumers",
                                         topology_look_at_queue, &looking, reterr);
    return status == THOLE_NOT_FOUND ? THOLE_OK : status; /* the stream's own defect */
}

/* ---- put right ---- */

thole_status topology_mend(struct connection *connection, const struct topology *topology,
                           const struct defect *defect, thole_error *reterr)
{
    static const char consumer[] = "queue ";
    assert(defect->cure != CURE_NONE && defect->object != DEFECT_TABLES);
    if (defect->object == DEFECT_QUEUE)
        return topology_remove_queue(connection, topology->ns,
                                     thole_slice_from(defect->name + sizeof consumer - 1), reterr);
    struct stream_spec spec = spec_of(topology, defect->object, defect->p);
    return defect->field[0] == '\0' ? spec_ensure(connection, &spec, reterr)
                                    : spec_mend(connection, &spec, reterr);
}
