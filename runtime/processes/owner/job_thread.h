/* A thread of the engine that does something from time to time, until the engine stops. */
#ifndef THOLE_JOB_THREAD_H
#define THOLE_JOB_THREAD_H
#include "thole/types.h"
#include <pthread.h>

struct job_thread {
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t wake;
    bool stopping, hurried;
};
/* @p what: "that compares rows", for the error. THOLE_NOMEM: there is no thread, and nothing to stop. */
THOLE_NODISCARD thole_status job_thread_start(struct job_thread *job, void *(*run)(void *), void *arg,
                                              const char *what, thole_error *reterr);
/* Sleeps for so long. False: the engine stops. */
bool job_thread_sleep(struct job_thread *job, uint64_t ms);
/* Like job_thread_sleep(), but job_thread_hurry() ends it. */
bool job_thread_doze(struct job_thread *job, uint64_t ms);
void job_thread_hurry(struct job_thread *job); /* any thread */
bool job_thread_is_stopping(struct job_thread *job);
void job_thread_stop(struct job_thread *job); /* joins it */
#endif
