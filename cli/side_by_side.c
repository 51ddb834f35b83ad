#include "side_by_side.h"
#include "memory.h"
#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct side_by_side {
    pthread_mutex_t lock;
    size_t next, n;
    side_by_side_fn *each;
    void *arg;
    thole_status status;
    thole_error error;
};

/* False: there is no other. */
static bool side_take(struct side_by_side *all, size_t *ret)
{
    pthread_mutex_lock(&all->lock);
    bool const goes = all->next < all->n && all->status == THOLE_OK;
    *ret = all->next;
    all->next += goes;
    pthread_mutex_unlock(&all->lock);
    return goes;
}

static void *side_main(void *arg)
{
    struct side_by_side *const all = arg;
    for (size_t i; side_take(all, &i);) {
        thole_error error = {.status = THOLE_OK};
        thole_status const status = all->each(all->arg, i, &error);
        pthread_mutex_lock(&all->lock);
        if (status != THOLE_OK && all->status == THOLE_OK) {
            all->status = status;
            all->error = error;
        }
        pthread_mutex_unlock(&all->lock);
    }
    return NULL;
}

thole_status side_by_side(size_t n, size_t threads_max, side_by_side_fn *each, void *arg, thole_error *reterr)
{
    struct side_by_side all = {.n = n, .each = each, .arg = arg};
    size_t const wanted = n < SIDE_BY_SIDE_MIN ? 0 : n < threads_max ? n : threads_max;
    pthread_t *const threads = memory_array(wanted + 1, sizeof *threads);
    size_t len = 0;
    assert(threads_max > 0);
    pthread_mutex_init(&all.lock, NULL);
    while (len < wanted && pthread_create(&threads[len], NULL, side_main, &all) == 0)
        len++;
    if (len == 0)
        (void)side_main(&all);
    for (size_t i = 0; i < len; i++)
        pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&all.lock);
    free(threads);
    if (all.status != THOLE_OK && reterr != NULL)
        *reterr = all.error;
    return all.status;
}
