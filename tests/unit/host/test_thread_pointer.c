/* Each thread has a pointer of its own, which a signal handler may read. */
#include "thole_cunit.h"
#include "thread_pointer.h"
#include <pthread.h>

enum { KEYS = 40 }; /* glibc holds the first 32 of a thread in place, and allocates for the others */

static struct thread_pointer many[KEYS];

static void *look_and_set(void *mine)
{
    for (size_t i = 0; i < KEYS; i++)
        if (thread_pointer_get(&many[i]) != NULL)
            return NULL;
    for (size_t i = 0; i < KEYS; i++)
        thread_pointer_set(&many[i], (const char *)mine + i);
    for (size_t i = 0; i < KEYS; i++)
        if (thread_pointer_get(&many[i]) != (const char *)mine + i)
            return NULL;
    return mine;
}

static void test_of_each_thread(void)
{
    static struct thread_pointer unset;
    static char first[KEYS], second[KEYS];
    pthread_t thread;
    void *seen = NULL;
    CU_ASSERT_PTR_NULL(thread_pointer_get(&unset));
    CU_ASSERT_PTR_EQUAL(look_and_set(first), first);
    CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, look_and_set, second), 0);
    CU_ASSERT_EQUAL(pthread_join(thread, &seen), 0);
    CU_ASSERT_PTR_EQUAL(seen, second); /* saw none of the first thread's */
    for (size_t i = 0; i < KEYS; i++)
        CU_ASSERT_PTR_EQUAL(thread_pointer_get(&many[i]), first + i);
    thread_pointer_set(&many[0], NULL);
    CU_ASSERT_PTR_NULL(thread_pointer_get(&many[0]));
    CU_ASSERT_PTR_EQUAL(thread_pointer_get(&many[1]), first + 1);
}

static const struct thole_test tests[] = {
    {"of_each_thread", test_of_each_thread},
};
THOLE_TEST_MAIN("thread pointer", tests)
