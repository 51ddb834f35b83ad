/* What code does beside its events: it crashes, which goes where the next owner finds it; it writes lines. */
#include "engine.h"
#include "log.h"
#include <stdlib.h>

/* A text that did not fit would be no reason to know nothing. */
static thole_slice keep(struct job *job, thole_slice text)
{
    thole_slice copy = {0};
    if (arena_dup(&job->arena, text, &copy) != THOLE_OK)
        abort();
    return copy;
}

static enum job_kind job_of(enum partition_out_kind kind)
{
    if (kind == PARTITION_OUT_READ_CRASHES)
        return JOB_READ_CRASHES;
    return kind == PARTITION_OUT_CRASHED ? JOB_PUT_CRASH : JOB_FORGET_CRASHES;
}

void shard_crash(struct shard *shard, const struct owned *owned, const struct partition_out *out)
{
    struct job *job = job_create(job_of(out->kind), shard, owned->p, out->generation);
    if (job == NULL)
        abort();
    const thole_program *const program = shard->engine->program;
    char id[BUILD_ID_BYTES] = "0";
    for (size_t i = 0; i < program->orchestrations_len; i++)
        if (thole_slice_equal(thole_slice_from(program->orchestrations[i].name), out->orchestration))
            (void)build_id((const void *)(uintptr_t)program->orchestrations[i].run, id);
    job->instance = keep(job, out->instance);
    job->crash = (struct crash_entry){.instance = job->instance,
                                      .count = out->count,
                                      .build = keep(job, thole_slice_from(id)),
                                      .orchestration = keep(job, out->orchestration),
                                      .version = out->version,
                                      .text = keep(job, out->data),
                                      .time_ms = clock_wall_ms()};
    loader_submit(shard->engine->loader, job);
}

/* A line that an orchestration wrote. */
void shard_log(const struct partition_out *out)
{
    static const enum log_level levels[] = {[THOLE_LOG_DEBUG] = LOG_LEVEL_DEBUG,
                                            [THOLE_LOG_INFO] = LOG_LEVEL_INFO,
                                            [THOLE_LOG_WARN] = LOG_LEVEL_WARN,
                                            [THOLE_LOG_ERROR] = LOG_LEVEL_ERROR};
    enum log_level const level =
        out->level < sizeof levels / sizeof levels[0] ? levels[out->level] : LOG_LEVEL_INFO;
    log_line(level, "orchestration", "instance=%.*s execution=%llu: %.*s", THOLE_FMT(out->instance),
             (unsigned long long)out->execution, THOLE_FMT(out->data));
}
