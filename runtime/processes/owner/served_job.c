#include "served_job.h"
#include "engine.h"
#include "job_thread.h"
#include "log.h"
#include "memory.h"
#include <stdlib.h>

enum { SERVED_SLEEP_MS = 60 * 60 * 1000 /* or until a request comes */ };

struct served_job {
    struct engine_host *engine;
    struct job_thread thread;
    struct served_names *names;
    bool running, denied; /* denied: that was said */
};

static void served_job_once(struct served_job *job)
{
    struct engine_host *const engine = job->engine;
    thole_error err = {.status = THOLE_OK};
    thole_slice const any = {NULL, 0};
    if (!served_names_asks(job->names, clock_monotonic_ms()))
        return;
    thole_status const status =
        served_names_ask(job->names, engine->connection, engine->topology.ns, any, any, &err);
    if (status == THOLE_DENIED && !job->denied)
        log_line(
            LOG_LEVEL_WARN, "shelf",
            "this user may not ask which activities the workers know: those that no worker knew are queued "
            "again each minute; give it what thole doctor --nats-permissions engine prints: %s",
            err.text);
    job->denied = status == THOLE_DENIED;
}

static void *served_job_main(void *arg)
{
    struct served_job *const job = arg;
    while (job_thread_doze(&job->thread, SERVED_SLEEP_MS))
        served_job_once(job);
    return NULL;
}

thole_status served_job_start(struct engine_host *engine, struct served_job **ret, thole_error *reterr)
{
    struct served_job *const job = memory_new(sizeof *job);
    job->engine = engine;
    job->names = served_names_create();
    *ret = job;
    THOLE_TRY(job_thread_start(&job->thread, served_job_main, job, "that asks the workers", reterr));
    job->running = true;
    return THOLE_OK;
}

void served_job_end(struct served_job *job)
{
    if (job == NULL || !job->running)
        return;
    job_thread_stop(&job->thread);
    job->running = false;
}

void served_job_release(struct served_job *job)
{
    if (job == NULL)
        return;
    served_names_destroy(job->names);
    free(job);
}

struct served_names *served_job_names(struct served_job *job)
{
    return job->names;
}

void served_job_ask(struct served_job *job)
{
    job_thread_hurry(&job->thread);
}
