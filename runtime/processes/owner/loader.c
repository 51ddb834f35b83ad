#include "loader.h"
#include "memory.h"
#include "shard_request.h"
#include <assert.h>
#include <stdlib.h>

struct loader {
    struct engine_host *engine;
    const char *thread_name;
    pthread_t threads[LOADER_THREADS_MAX];
    size_t threads_len;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct request_list waiting;
    bool stopping;
};

static struct request *next_request(struct loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    while (loader->waiting.first == NULL && !loader->stopping)
        pthread_cond_wait(&loader->wake, &loader->lock);
    struct request *request = request_list_take(&loader->waiting);
    pthread_mutex_unlock(&loader->lock);
    return request;
}

static void *loader_main(void *arg)
{
    struct loader *loader = arg;
    struct request *request;
    (void)pthread_setname_np(pthread_self(), loader->thread_name);
    while ((request = next_request(loader)) != NULL) {
        request->status = request_rule(request)->load(loader->engine, request);
        request_finish(request);
    }
    return NULL;
}

thole_status loader_start(struct engine_host *engine, const char *thread_name, size_t threads,
                          struct loader **ret, thole_error *reterr)
{
    assert(threads > 0 && threads <= LOADER_THREADS_MAX);
    struct loader *loader = memory_new(sizeof *loader);
    loader->engine = engine;
    loader->thread_name = thread_name;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->wake, NULL);
    for (; loader->threads_len < threads; loader->threads_len++)
        if (pthread_create(&loader->threads[loader->threads_len], NULL, loader_main, loader) != 0)
            break;
    if (loader->threads_len == 0) {
        loader_stop(loader);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start the thread %s", thread_name);
    }
    *ret = loader;
    return THOLE_OK;
}

void loader_submit(struct loader *loader, struct request *request)
{
    assert(request_rule(request)->load != NULL);
    pthread_mutex_lock(&loader->lock);
    request_list_append(&loader->waiting, request);
    pthread_cond_signal(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
}

void loader_stop(struct loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stopping = true;
    pthread_cond_broadcast(&loader->wake);
    pthread_mutex_unlock(&loader->lock);
    for (size_t i = 0; i < loader->threads_len; i++)
        pthread_join(loader->threads[i], NULL);
    pthread_mutex_destroy(&loader->lock);
    pthread_cond_destroy(&loader->wake);
    free(loader);
}
