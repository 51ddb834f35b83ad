#include "job_thread.h"
#include "clock.h"

static void job_thread_release(struct job_thread *job)
{
    (void)pthread_cond_destroy(&job->wake);
    (void)pthread_mutex_destroy(&job->lock);
}

thole_status job_thread_start(struct job_thread *job, void *(*run)(void *), void *arg, const char *what,
                              thole_error *reterr)
{
    job->stopping = job->hurried = false;
    (void)pthread_mutex_init(&job->lock, NULL);
    clock_condition_init(&job->wake);
    if (pthread_create(&job->thread, NULL, run, arg) == 0)
        return THOLE_OK;
    job_thread_release(job);
    return thole_fail(reterr, THOLE_NOMEM, "cannot start the thread %s", what);
}

static bool job_thread_wait_for(struct job_thread *job, uint64_t ms, bool hurries)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + ms);
    int waited = 0;
    (void)pthread_mutex_lock(&job->lock);
    while (!job->stopping && !(hurries && job->hurried) && waited == 0)
        waited = pthread_cond_timedwait(&job->wake, &job->lock, &until);
    bool const on = !job->stopping;
    if (hurries)
        job->hurried = false;
    (void)pthread_mutex_unlock(&job->lock);
    return on;
}

bool job_thread_sleep(struct job_thread *job, uint64_t ms)
{
    return job_thread_wait_for(job, ms, false);
}

bool job_thread_doze(struct job_thread *job, uint64_t ms)
{
    return job_thread_wait_for(job, ms, true);
}

void job_thread_hurry(struct job_thread *job)
{
    (void)pthread_mutex_lock(&job->lock);
    job->hurried = true;
    (void)pthread_cond_signal(&job->wake);
    (void)pthread_mutex_unlock(&job->lock);
}

bool job_thread_is_stopping(struct job_thread *job)
{
    (void)pthread_mutex_lock(&job->lock);
    bool const stopping = job->stopping;
    (void)pthread_mutex_unlock(&job->lock);
    return stopping;
}

void job_thread_stop(struct job_thread *job)
{
    (void)pthread_mutex_lock(&job->lock);
    job->stopping = true;
    (void)pthread_cond_signal(&job->wake);
    (void)pthread_mutex_unlock(&job->lock);
    (void)pthread_join(job->thread, NULL);
    job_thread_release(job);
}
