/* Crashes of orchestrations' code, stored for the next owner, and their log lines. */
#include "call_site.h"
#include "partition_states.h"
#include "remedy.h"
#include "shard_parts.h"
#include "standstill.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { CRASHES_MIN = 64 };

/* ---- crashes ---- */

void crashes_list(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    request_submit(request_of(REQ_READ_CRASHES, shard, owned, out));
}

void crash_put(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_PUT_CRASH, shard, owned, out);
    const struct out_crashed *const asked = &out->crashed;
    const thole_program *const program = shard->engine->program;
    char id[BUILD_ID_BYTES] = "0";
    for (size_t i = 0; i < program->orchestrations_len; i++)
        if (thole_slice_equal(thole_slice_from(program->orchestrations[i].name), asked->orchestration))
            (void)build_id((const void *)(uintptr_t)program->orchestrations[i].run, id);
    request->crash = (struct crash_entry){.instance = request_keep(request, asked->instance),
                                          .count = asked->count,
                                          .execution = asked->execution,
                                          .build = request_keep(request, thole_slice_from(id)),
                                          .orchestration = request_keep(request, asked->orchestration),
                                          .version = asked->version,
                                          .text = request_keep(request, asked->text),
                                          .time_ms = clock_wall_ms()};
    request_submit(request);
}

void crashes_forget(struct shard *shard, struct owned *owned, const struct partition_out *out)
{
    struct request *request = request_of(REQ_FORGET_CRASHES, shard, owned, out);
    request->crash.instance = request_keep(request, out->crashes_over.instance);
    request_submit(request);
}

/* ---- on a loader's thread ---- */

struct crash_list {
    struct engine_host *engine;
    struct arena *arena;
    struct partition_crash *crashes;
    size_t len, cap;
};

/* Whether the crash is of the build that would run here. Code that is not registered here does not run. */
static bool same_build(const struct engine_host *engine, const struct crash_entry *entry)
{
    char id[BUILD_ID_BYTES];
    const thole_program *const program = engine->program;
    for (size_t i = 0; i < program->orchestrations_len; i++)
        if (thole_slice_equal(thole_slice_from(program->orchestrations[i].name), entry->orchestration) &&
            thole_slice_equal(
                thole_slice_from(build_id((const void *)(uintptr_t)program->orchestrations[i].run, id)),
                entry->build))
            return true;
    return false;
}

static thole_status collect_crash(void *arg, const struct crash_entry *entry)
{
    struct crash_list *const list = arg;
    if (list->len == list->cap) {
        size_t const cap = list->cap == 0 ? CRASHES_MIN : list->cap * 2;
        struct partition_crash *const grown = arena_array(list->arena, cap, sizeof *grown);
        if (grown == NULL)
            return THOLE_NOMEM;
        if (list->len > 0)
            memcpy(grown, list->crashes, list->len * sizeof *grown);
        list->crashes = grown;
        list->cap = cap;
    }
    struct partition_crash *const crash = &list->crashes[list->len];
    crash->count = same_build(list->engine, entry) ? entry->count : 0;
    crash->execution = entry->execution;
    THOLE_TRY(arena_dup(list->arena, entry->instance, &crash->instance));
    THOLE_TRY(arena_dup(list->arena, entry->text, &crash->text));
    list->len++;
    return THOLE_OK;
}

thole_status crashes_load(struct engine_host *engine, struct request *request)
{
    struct crash_list list = {.engine = engine, .arena = &request->arena};
    thole_status const status = crashes_read(engine->connection, engine->topology.ns, request->mail.p,
                                             collect_crash, &list, request_error(request));
    request->in.crashes = (struct in_crashes){list.crashes, list.len};
    return status;
}

thole_status crash_put_load(struct engine_host *engine, struct request *request)
{
    return crashes_put(engine->connection, engine->topology.ns, request->mail.p, &request->crash,
                       request_error(request));
}

thole_status crash_forget_load(struct engine_host *engine, struct request *request)
{
    return crashes_remove(engine->connection, engine->topology.ns, request->mail.p, request->crash.instance,
                          request_error(request));
}

/* ---- lines ---- */

void code_log(uint32_t p, const struct out_line *out)
{
    static const enum log_level levels[] = {[THOLE_LOG_DEBUG] = LOG_LEVEL_DEBUG,
                                            [THOLE_LOG_INFO] = LOG_LEVEL_INFO,
                                            [THOLE_LOG_WARN] = LOG_LEVEL_WARN,
                                            [THOLE_LOG_ERROR] = LOG_LEVEL_ERROR};
    enum log_level const level =
        out->level < sizeof levels / sizeof levels[0] ? levels[out->level] : LOG_LEVEL_INFO;
    struct log_fields fields = *LOG_INSTANCE(p, out->instance, out->execution);
    fields.traceparent = out->traceparent;
    log_line_of(level, "orchestration", &fields, "%.*s", THOLE_FMT(out->text));
}

static enum engine_line line_of(enum blocked_kind kind)
{
    switch (kind) {
    case BLOCKED_NO_CODE: return LINE_STOPPED_NO_CODE;
    case BLOCKED_NONDETERMINISM: return LINE_STOPPED_DIVERGENCE;
    case BLOCKED_TOO_NEW: return LINE_STOPPED_TOO_NEW;
    case BLOCKED_LIMIT: return LINE_STOPPED_LIMIT;
    case BLOCKED_PAUSED: return LINE_STOPPED_PAUSED;
    case BLOCKED_CRASHED: return LINE_STOPPED_CRASHED;
    case BLOCKED_NOT:
    case BLOCKED_NOT_STARTED:
    case BLOCKED_DAMAGED: break;
    }
    return LINE_STOPPED_DAMAGED;
}

void stop_log(struct shard *shard, uint32_t p, const struct out_stopped *out)
{
    struct standstill const stop = standstill_of(out->kind);
    char version[24] = "", remedy[2 * THOLE_ID_BYTES_MAX + 200];
    remedy_fill(stop.remedy, out->instance, remedy, sizeof remedy);
    if (out->version > 1)
        (void)snprintf(version, sizeof version, "@%" PRIu32, out->version);
    log_limits_line(shard->engine->lines, clock_monotonic_ms(), line_of(out->kind),
                    LOG_INSTANCE(p, out->instance, out->execution), "orchestration %.*s%s %s: %.*s; try: %s",
                    THOLE_FMT(out->orchestration), version, stop.state, THOLE_FMT(out->text), remedy);
}

void limit_log(struct shard *shard, uint32_t p, const struct out_limited *out)
{
    struct limited_words const words = limited_words_of(out);
    char name[METRIC_NAME_BYTES];
    (void)snprintf(name, sizeof name, "%.*s", THOLE_FMT(out->orchestration));
    metric_add(shard->cells, METRIC_ENGINE_LIMITED,
               metrics_named(shard->cells, METRIC_ENGINE_LIMITED, name, out->limit), 1);
    partition_states_limited(shard->engine->states, p, out, &words);
    log_limits_line(shard->engine->lines, clock_monotonic_ms(), LINE_LIMITED + out->limit,
                    LOG_INSTANCE(p, out->instance, out->execution), "%s; try: %s", words.text, words.remedy);
}

/* ---- places in the code ---- */

/* The look-up starts a process and takes tens of milliseconds: what diverges does so at few places. */
void code_site(void *arg, const void *address, char to[CODE_SITE_BYTES])
{
    struct shard *const shard = arg;
    struct buf text;
    for (size_t i = 0; i < SITES_MAX; i++)
        if (shard->sites[i].address == address) {
            memcpy(to, shard->sites[i].text, CODE_SITE_BYTES);
            return;
        }
    struct code_place *const place = &shard->sites[shard->sites_next++ % SITES_MAX];
    buf_init(&text, CODE_SITE_BYTES - 1);
    call_site_text(address, &text);
    (void)snprintf(place->text, sizeof place->text, "%s", buf_cstr(&text));
    place->address = address;
    buf_release(&text);
    memcpy(to, place->text, CODE_SITE_BYTES);
}
