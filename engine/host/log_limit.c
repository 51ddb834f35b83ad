#include "log_limit.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LINE_BYTES = 2048 }; /* what log_line() cuts at */

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

static void warn_more(uint64_t more, const char *area, const char *what)
{
    if (more > 0)
        log_line(LOG_LEVEL_WARN, area, "and %" PRIu64 " more %s", more, what);
}

void log_limit_warn(struct log_limit *limit, uint64_t now_ms, const char *area, const char *what,
                    const char *fmt, ...)
{
    char line[LINE_BYTES];
    uint64_t more = 0;
    va_list args;
    if (!log_limit_pass(limit, now_ms, &more))
        return;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    log_line(LOG_LEVEL_WARN, area, "%s", line);
    warn_more(more, area, what);
}

void log_limit_warn_rest(struct log_limit *limit, uint64_t now_ms, const char *area, const char *what)
{
    warn_more(log_limit_rest(limit, now_ms), area, what);
}
