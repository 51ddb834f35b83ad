/* The specification of each stream and bucket of a namespace. */
#include "stream_specs.h"
#include <stdio.h>
#include <string.h>

enum { DEDUPE_MS = 120000 };
enum {
    REJECTED_MSGS_MAX = 10000,
    REJECTED_BYTES_MAX = 32 * 1024 * 1024,
    REJECTED_AGE_MS = 7 * 24 * 3600 * 1000
};

static void spec_begin(struct stream_spec *spec, enum defect_object object, const char *ns, uint32_t p)
{
    spec->object = object;
    spec->p = p;
    (void)snprintf(spec->ns, sizeof spec->ns, "%s", ns);
}

struct stream_spec stream_spec_inbox(const char *ns, uint32_t p, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it takes the messages to instances",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 2,
                               .add_subjects = true,
                               .dedupe_ms = DEDUPE_MS};
    spec_begin(&spec, DEFECT_IN, ns, p);
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_IN_%u", ns, p);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.in.%u.*.*.*", ns, p);
    (void)snprintf(spec.subjects[1], sizeof spec.subjects[1], "thole.%s.in.%u.*.*.*.by.*", ns, p);
    return spec;
}

struct stream_spec stream_spec_history(const char *ns, uint32_t p, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it is the history and must never lose a message to a limit",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 2,
                               .no_limits = true,
                               .deny_purge = true};
    spec_begin(&spec, DEFECT_HIST, ns, p);
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_HIST_%u", ns, p);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.hist.%u.*.*", ns, p);
    (void)snprintf(spec.subjects[1], sizeof spec.subjects[1], "thole.%s.ctl.%u.*", ns, p);
    return spec;
}

struct stream_spec stream_spec_work(const char *ns, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it holds each activity until a worker has done it",
                               .retention = "workqueue",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .lift_max_per_subject = true,
                               .deny_purge = true};
    spec_begin(&spec, DEFECT_WORK, ns, 0);
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_WORK", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.work.>", ns);
    return spec;
}

/* The limits are the operator's choice, but there must be limits. */
struct stream_spec stream_spec_rejected(const char *ns, uint32_t replicas)
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
    spec_begin(&spec, DEFECT_REJECTED, ns, 0);
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_REJECTED", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.rejected.*", ns);
    return spec;
}

/* The limits are the operator's choice: for how long, and whether a full stream drops the oldest events or
 * makes engines wait. */
struct stream_spec stream_spec_events(const char *ns, uint64_t age_ms, uint32_t replicas)
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
    spec_begin(&spec, DEFECT_EVENTS, ns, 0);
    (void)snprintf(spec.name, sizeof spec.name, "THOLE_%s_EVENTS", ns);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.event.*.*.ce.>", ns);
    return spec;
}

static enum defect_object bucket_object(const char *kind)
{
    return strcmp(kind, "NODES") == 0     ? DEFECT_NODES
           : strcmp(kind, "CRASHES") == 0 ? DEFECT_CRASHES
           : strcmp(kind, "SECRET") == 0  ? DEFECT_SECRET
                                          : DEFECT_CONFIG;
}

/* A key-value bucket, as every NATS client understands it. */
struct stream_spec stream_spec_bucket(const char *ns, const char *kind, uint64_t ttl_ms, uint32_t replicas)
{
    struct stream_spec spec = {.purpose = "it is a key-value bucket",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .max_age_ms = ttl_ms,
                               .dedupe_ms = ttl_ms > 0 && ttl_ms < DEDUPE_MS ? ttl_ms : DEDUPE_MS,
                               .max_per_subject = 1,
                               .deny_delete = true,
                               .allow_rollup = true,
                               .write_once = strcmp(kind, "SECRET") == 0};
    spec_begin(&spec, bucket_object(kind), ns, 0);
    (void)snprintf(spec.name, sizeof spec.name, "KV_THOLE_%s_%s", ns, kind);
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "$KV.THOLE_%s_%s.>", ns, kind);
    return spec;
}

/* ---- the stores that not every namespace has ---- */

/* A bucket whose keys keep their last values; what was said stays said. */
static struct stream_spec spec_holds(uint32_t replicas)
{
    return (struct stream_spec){.object = DEFECT_HOLDS,
                                .purpose = "it is a key-value bucket of legal holds",
                                .retention = "limits",
                                .replicas = replicas,
                                .max_per_subject = STORE_HOLDS_HISTORY,
                                .deny_delete = true,
                                .deny_purge = true};
}

static struct stream_spec spec_bindings(uint32_t replicas)
{
    return (struct stream_spec){.object = DEFECT_BINDINGS,
                                .purpose = "it is a key-value bucket of rules",
                                .retention = "limits",
                                .replicas = replicas,
                                .max_per_subject = STORE_BINDINGS_HISTORY,
                                .deny_delete = true,
                                .allow_rollup = true};
}

static struct stream_spec spec_audit(uint32_t replicas)
{
    return (struct stream_spec){.object = DEFECT_AUDIT,
                                .purpose = "checkpoints in it must stay",
                                .retention = "limits",
                                .replicas = replicas,
                                .deny_purge = true,
                                .deny_delete = true};
}

static struct stream_spec spec_restored(uint32_t replicas)
{
    return (struct stream_spec){.object = DEFECT_RESTORED,
                                .purpose = "it has what was restored from archives",
                                .retention = "limits",
                                .replicas = replicas};
}

struct stream_spec stream_spec_store(const char *ns, enum namespace_store store, uint32_t replicas)
{
    static const char *const kinds[] = {[STORE_HOLDS] = "HOLDS",
                                        [STORE_BINDINGS] = "BINDINGS",
                                        [STORE_AUDIT] = "AUDIT",
                                        [STORE_RESTORED] = "RESTORED"};
    bool const bucket = store == STORE_HOLDS || store == STORE_BINDINGS;
    if (store == STORE_EVENTS)
        return stream_spec_events(ns, 0, replicas);
    struct stream_spec spec = store == STORE_HOLDS      ? spec_holds(replicas)
                              : store == STORE_BINDINGS ? spec_bindings(replicas)
                              : store == STORE_AUDIT    ? spec_audit(replicas)
                                                        : spec_restored(replicas);
    (void)snprintf(spec.ns, sizeof spec.ns, "%s", ns);
    spec.subjects_len = 1;
    (void)snprintf(spec.name, sizeof spec.name, bucket ? "KV_THOLE_%s_%s" : "THOLE_%s_%s", ns, kinds[store]);
    if (bucket)
        (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "$KV.THOLE_%s_%s.>", ns, kinds[store]);
    else
        (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.%s.>", ns, store_name(store));
    return spec;
}
