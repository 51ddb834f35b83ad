/* Crashes of orchestrations' code, stored for the next owner, and their log lines. */
#include "shard_parts.h"
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
