/* For assertions, where a comment says "the lock is held". */
#ifndef THOLE_LOCKED_H
#define THOLE_LOCKED_H
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/* Whether any thread holds it. If not, the caller has locked it, and the assertion ends the process. */
static inline bool is_locked(pthread_mutex_t *lock)
{
    return pthread_mutex_trylock(lock) == EBUSY;
}
#endif
