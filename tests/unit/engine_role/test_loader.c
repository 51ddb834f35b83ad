/* The threads that load: each request is carried out once and given back, also those that wait when it stops.
 */
#include "loader.h"
#include "shard_request.h"
#include "thole_cunit.h"
#include "wrap_mutexes.h"
#include "wrap_shard_world.h"
#include <pthread.h>
#include <stdlib.h>

enum { REQUESTS = 50 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned loaded, finished, with_status, at_once, most_at_once, threads, threads_max;
    bool held; /* loads wait */
} play;

static thole_status load(struct engine_host *engine, struct request *request)
{
    (void)request;
    CU_ASSERT_PTR_EQUAL(engine, &world.engine);
    pthread_mutex_lock(&play.lock);
    play.at_once++;
    play.most_at_once = play.at_once > play.most_at_once ? play.at_once : play.most_at_once;
    (void)pthread_cond_broadcast(&play.changed);
    while (play.held)
        (void)pthread_cond_wait(&play.changed, &play.lock);
    play.at_once--;
    play.loaded++;
    pthread_mutex_unlock(&play.lock);
    return THOLE_CORRUPT;
}

void __wrap_request_finish(struct request *request)
{
    pthread_mutex_lock(&play.lock);
    play.finished++;
    play.with_status += request->status == THOLE_CORRUPT;
    (void)pthread_cond_broadcast(&play.changed);
    pthread_mutex_unlock(&play.lock);
    request_destroy(request);
}

int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *arg)
{
    return play.threads++ < play.threads_max ? __real_pthread_create(ret, attributes, run, arg) : 11;
}

static const struct request_rule rules[REQ_KINDS] = {
    [REQ_LOAD] = {.executor = EXECUTOR_LOADER, .load = load}};

static struct loader *begin(unsigned threads, thole_status want)
{
    struct loader *loader = NULL;
    thole_error err = {0};
    memset(&play, 0, sizeof play);
    (void)pthread_mutex_init(&play.lock, NULL);
    (void)pthread_cond_init(&play.changed, NULL);
    play.threads_max = threads;
    shard_world_begin(rules);
    CU_ASSERT_EQUAL_FATAL(loader_start(&world.engine, "thole-loader", 2, &loader, &err), want);
    CU_ASSERT_EQUAL(want == THOLE_OK, err.text[0] == '\0');
    return loader;
}

static void submit(struct loader *loader, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        loader_submit(loader, request_create(REQ_LOAD, &world.shard, &world.owned));
}

static void wait_for(const unsigned *count, unsigned n)
{
    pthread_mutex_lock(&play.lock);
    while (*count < n)
        (void)pthread_cond_wait(&play.changed, &play.lock);
    pthread_mutex_unlock(&play.lock);
}

static void test_each_once(void)
{
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct loader *const loader = begin(threads, THOLE_OK);
        for (unsigned i = 1; i <= 3; i++) { /* sleeps in between */
            submit(loader, 1);
            wait_for(&play.finished, i);
        }
        play.held = true; /* no thread has anything to do */
        submit(loader, REQUESTS);
        wait_for(&play.at_once, threads);
        pthread_mutex_lock(&play.lock);
        play.held = false;
        (void)pthread_cond_broadcast(&play.changed);
        pthread_mutex_unlock(&play.lock);
        loader_stop(loader); /* waiting loads are carried out first */
        CU_ASSERT_EQUAL(play.loaded, REQUESTS + 3);
        CU_ASSERT_EQUAL(play.finished, REQUESTS + 3);
        CU_ASSERT_EQUAL(play.with_status, REQUESTS + 3);
        CU_ASSERT_EQUAL(play.most_at_once, threads); /* both work */
    }
    loader_stop(NULL);
}

static void test_no_thread(void)
{
    (void)begin(0, THOLE_NOMEM);
    loader_stop(begin(1, THOLE_OK));
    CU_ASSERT_EQUAL(play.threads, 2);
}

static const struct thole_test tests[] = {{"each once", test_each_once}, {"no thread", test_no_thread}};
THOLE_TEST_MAIN("loader", tests)
