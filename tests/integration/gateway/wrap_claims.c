#include "wrap_claims.h"
#include "task_claim.h"
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { WORKERS_MAX = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char worker[ACTIVITY_WORKER_BYTES];
    uint64_t last;
} counts[WORKERS_MAX];

void claims_begin(void)
{
    for (size_t i = 0; i < WORKERS_MAX; i++)
        if (counts[i].worker[0] == '\0')
            counts[i].last = 0;
}

void __wrap_task_claim_write(const struct thole_activity *act, char ret[TASK_CLAIM_BYTES])
{
    thole_slice const worker = act->parties.worker;
    size_t i = 0;
    (void)pthread_mutex_lock(&lock);
    while (i < WORKERS_MAX && counts[i].last > 0 &&
           !thole_slice_equal(worker, thole_slice_from(counts[i].worker)))
        i++;
    if (i == WORKERS_MAX)
        abort();
    (void)snprintf(counts[i].worker, sizeof counts[i].worker, "%.*s", THOLE_FMT(worker));
    (void)snprintf(ret, TASK_CLAIM_BYTES, "%" PRIu64, ++counts[i].last);
    (void)pthread_mutex_unlock(&lock);
}
