#include "log_limit.h"

void log_limit_init(struct log_limit *limit)
{
    *limit = (struct log_limit){.more = 0};
    pthread_mutex_init(&limit->lock, NULL);
}

void log_limit_release(struct log_limit *limit)
{
    pthread_mutex_destroy(&limit->lock);
}

static bool may(const struct log_limit *limit, uint64_t now_ms)
{
    return limit->last_ms == 0 || now_ms >= limit->last_ms + LOG_LIMIT_EVERY_MS;
}

static uint64_t take(struct log_limit *limit, uint64_t now_ms)
{
    uint64_t const more = limit->more;
    limit->more = 0;
    limit->last_ms = now_ms == 0 ? 1 : now_ms;
    return more;
}

bool log_limit_pass(struct log_limit *limit, uint64_t now_ms, uint64_t *ret_more)
{
    pthread_mutex_lock(&limit->lock);
    bool const pass = may(limit, now_ms);
    if (pass)
        *ret_more = take(limit, now_ms);
    else
        limit->more++;
    pthread_mutex_unlock(&limit->lock);
    return pass;
}

uint64_t log_limit_rest(struct log_limit *limit, uint64_t now_ms)
{
    pthread_mutex_lock(&limit->lock);
    uint64_t const more = limit->more > 0 && may(limit, now_ms) ? take(limit, now_ms) : 0;
    pthread_mutex_unlock(&limit->lock);
    return more;
}

uint64_t log_limit_due_ms(struct log_limit *limit)
{
    pthread_mutex_lock(&limit->lock);
    uint64_t const due = limit->more > 0 ? limit->last_ms + LOG_LIMIT_EVERY_MS : UINT64_MAX;
    pthread_mutex_unlock(&limit->lock);
    return due;
}
