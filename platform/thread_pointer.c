#include "thread_pointer.h"
#include "memory.h"

static void thread_pointer_make_key(struct thread_pointer *pointer)
{
    static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
    (void)pthread_mutex_lock(&making);
    if (!atomic_load(&pointer->made)) {
        if (pthread_key_create(&pointer->key, NULL) != 0)
            memory_give_up(1, sizeof(pthread_key_t));
        atomic_store(&pointer->made, true);
    }
    (void)pthread_mutex_unlock(&making);
}

void thread_pointer_set(struct thread_pointer *pointer, const void *value)
{
    if (!atomic_load(&pointer->made))
        thread_pointer_make_key(pointer);
    if (pthread_setspecific(pointer->key, value) != 0)
        memory_give_up(1, sizeof value);
}

const void *thread_pointer_get(const struct thread_pointer *pointer)
{
    return atomic_load(&pointer->made) ? pthread_getspecific(pointer->key) : NULL;
}
