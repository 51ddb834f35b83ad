/* For assertions, where a comment says "the lock is held". */
#ifndef THOLE_LOCKED_H
#define THOLE_LOCKED_H
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

/* Somebody holds it; pthread does not say who. False ends the process: then the caller has it now. */
static inline bool is_locked(pthread_mutex_t *lock)
{
    return pthread_mutex_trylock(lock) == EBUSY;
}
#endif
