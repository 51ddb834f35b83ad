/*
 * One pointer for each thread, that a signal handler of the thread may read. It is kept with a pthread key
 * and not in a thread-local variable: a library with static TLS cannot always be loaded by dlopen(), and any
 * other thread-local variable may be allocated by the read itself. pthread_getspecific() is AS-Safe in
 * glibc's manual.
 */
#ifndef THOLE_THREAD_POINTER_H
#define THOLE_THREAD_POINTER_H
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* Static storage, zeroed; its key is made by the first thread_pointer_set() and kept until the process ends.
 */
struct thread_pointer {
    atomic_bool made;
    pthread_key_t key;
};
/* @p value is borrowed until the next call of the same thread. Aborts where there is no memory for it. */
void thread_pointer_set(struct thread_pointer *pointer, const void *value);
/* Async-signal-safe. NULL: this thread has not set it. */
const void *thread_pointer_get(const struct thread_pointer *pointer);
#endif
