#include "jobs.h"
#include "memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct worker {
    struct jobs *jobs;
    size_t number;
    pthread_t thread;
};
struct jobs {
    job_fn *run;
    void *arg;
    struct worker *workers;
    size_t workers_len;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t more;
    void **waiting; /* a ring */
    size_t first, len, cap;
    bool ends;
};

static void *jobs_take(struct jobs *jobs)
{
    void *job = NULL;
    pthread_mutex_lock(&jobs->lock);
    while (jobs->len == 0 && !jobs->ends)
        (void)pthread_cond_wait(&jobs->more, &jobs->lock);
    if (jobs->len > 0) {
        job = jobs->waiting[jobs->first];
        jobs->first = (jobs->first + 1) % jobs->cap;
        jobs->len--;
    }
    pthread_mutex_unlock(&jobs->lock);
    return job;
}

static void *jobs_work(void *arg)
{
    const struct worker *const worker = arg;
    void *job;
    while ((job = jobs_take(worker->jobs)) != NULL)
        worker->jobs->run(worker->jobs->arg, worker->number, job);
    return NULL;
}

bool jobs_put(struct jobs *jobs, void *job)
{
    assert(job != NULL);
    pthread_mutex_lock(&jobs->lock);
    bool const room = jobs->len < jobs->cap && !jobs->ends;
    if (room) {
        jobs->waiting[(jobs->first + jobs->len) % jobs->cap] = job;
        jobs->len++;
        (void)pthread_cond_signal(&jobs->more);
    }
    pthread_mutex_unlock(&jobs->lock);
    return room;
}

thole_status jobs_start(size_t workers, size_t waiting_max, job_fn *run, void *arg, struct jobs **ret,
                        thole_error *reterr)
{
    struct jobs *const jobs = memory_new(sizeof *jobs);
    jobs->run = run;
    jobs->arg = arg;
    jobs->cap = waiting_max;
    jobs->waiting = memory_array(waiting_max, sizeof *jobs->waiting);
    jobs->workers = memory_array(workers, sizeof *jobs->workers);
    (void)pthread_mutex_init(&jobs->lock, NULL);
    (void)pthread_cond_init(&jobs->more, NULL);
    for (size_t i = 0; i < workers; i++) {
        jobs->workers[i] = (struct worker){.jobs = jobs, .number = i};
        int const code = pthread_create(&jobs->workers[i].thread, NULL, jobs_work, &jobs->workers[i]);
        if (code != 0) {
            jobs_stop(jobs);
            jobs_free(jobs);
            return thole_fail(reterr, THOLE_UNAVAILABLE, "the system has no thread left: %s", strerror(code));
        }
        jobs->workers_len++;
    }
    *ret = jobs;
    return THOLE_OK;
}

void jobs_stop(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    pthread_mutex_lock(&jobs->lock);
    jobs->ends = true;
    (void)pthread_cond_broadcast(&jobs->more);
    pthread_mutex_unlock(&jobs->lock);
    for (size_t i = 0; i < jobs->workers_len; i++)
        (void)pthread_join(jobs->workers[i].thread, NULL);
}

void jobs_free(struct jobs *jobs)
{
    if (jobs == NULL)
        return;
    (void)pthread_cond_destroy(&jobs->more);
    (void)pthread_mutex_destroy(&jobs->lock);
    free(jobs->workers);
    free(jobs->waiting);
    free(jobs);
}
