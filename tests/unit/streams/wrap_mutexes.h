/* Mutexes that are made meanwhile find out what is wrong with their use: one that is unlocked and was not
 * locked by this thread, is locked twice by it, or is destroyed while it is locked ends the test. */
#ifndef WRAP_MUTEXES_H
#define WRAP_MUTEXES_H
#include <pthread.h>

/* Called after each unlock, when another thread may come in; NULL: nothing is. */
extern void (*wrap_mutexes_unlocked)(const pthread_mutex_t *mutex);
#endif
