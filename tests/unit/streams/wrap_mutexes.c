#include "wrap_mutexes.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void (*wrap_mutexes_unlocked)(const pthread_mutex_t *mutex);

static int checked(int error, const char *call)
{
    if (error != 0) {
        (void)fprintf(stderr, "%s: %s\n", call, strerror(error));
        abort();
    }
    return 0;
}

int __real_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr);
int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    pthread_mutexattr_t checking;
    if (attr != NULL)
        return __real_pthread_mutex_init(mutex, attr);
    (void)pthread_mutexattr_init(&checking);
    (void)pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    int const error = __real_pthread_mutex_init(mutex, &checking);
    (void)pthread_mutexattr_destroy(&checking);
    return error;
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    return checked(__real_pthread_mutex_lock(mutex), "pthread_mutex_lock");
}

int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    (void)checked(__real_pthread_mutex_unlock(mutex), "pthread_mutex_unlock");
    if (wrap_mutexes_unlocked != NULL)
        wrap_mutexes_unlocked(mutex);
    return 0;
}

int __real_pthread_mutex_destroy(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    return checked(__real_pthread_mutex_destroy(mutex), "pthread_mutex_destroy");
}
