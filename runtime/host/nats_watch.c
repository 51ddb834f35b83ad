#include "nats_watch.h"
#include "clock.h"
#include <assert.h>

enum { SAY_EVERY_MS = 10000, FORBIDDEN_LINES_MAX = 3 };

void nats_watch_begin(struct nats_watch *watch, const char *area, enum log_level state_level,
                      struct metrics *metrics)
{
    *watch = (struct nats_watch){.area = area, .state_level = state_level, .cells = metrics_cells(metrics)};
    pthread_mutex_init(&watch->lock, NULL);
}

void nats_watch_end(struct nats_watch *watch)
{
    metrics_return_cells(watch->cells);
    pthread_mutex_destroy(&watch->lock);
}

void nats_watch_state(struct nats_watch *watch, bool connected)
{
    bool const warns = watch->state_level == LOG_LEVEL_WARN;
    pthread_mutex_lock(&watch->lock);
    watch->waiting_ms = watch->denied_ms = 0; /* the next outage says its reason at once */
    pthread_mutex_unlock(&watch->lock);
    log_line(connected && warns ? LOG_LEVEL_INFO : watch->state_level, watch->area, "NATS %s",
             connected ? "connected" : "connection lost; reconnecting");
}

/* ---- why it cannot be made ---- */

/* A server that comes back may refuse the credentials: that is said whatever was said before. */
static bool says_waiting(struct nats_watch *watch, uint64_t now_ms, thole_status status)
{
    pthread_mutex_lock(&watch->lock);
    uint64_t *const said_ms = status == THOLE_DENIED ? &watch->denied_ms : &watch->waiting_ms;
    bool const says = *said_ms == 0 || now_ms - *said_ms >= SAY_EVERY_MS;
    if (says)
        *said_ms = now_ms;
    pthread_mutex_unlock(&watch->lock);
    return says;
}

/* ---- actions that the server forbids ---- */

/* Subjects may have ids, so that each line differs: a few of them at a time show which there are. */
static bool says_forbidden(struct nats_watch *watch, uint64_t now_ms, const thole_error *error,
                           unsigned *ret_more)
{
    *ret_more = 0;
    pthread_mutex_lock(&watch->lock);
    watch->forbidden_last_ms = now_ms;
    watch->forbidden = *error;
    if (watch->forbidden_ms == 0 || now_ms - watch->forbidden_ms >= SAY_EVERY_MS) {
        *ret_more = watch->forbidden_more;
        watch->forbidden_ms = now_ms;
        watch->forbidden_lines = watch->forbidden_more = 0;
    }
    bool const says = watch->forbidden_lines < FORBIDDEN_LINES_MAX;
    watch->forbidden_lines += says;
    watch->forbidden_more += !says;
    pthread_mutex_unlock(&watch->lock);
    return says;
}

static void say_forbidden(struct nats_watch *watch, const thole_error *error)
{
    unsigned more;
    if (!says_forbidden(watch, clock_monotonic_ms(), error, &more))
        return;
    if (more > 0)
        log_line(LOG_LEVEL_WARN, watch->area, "%s; and %u more such before", error->text, more);
    else
        log_line(LOG_LEVEL_WARN, watch->area, "%s", error->text);
}

void nats_watch_trouble(struct nats_watch *watch, enum connection_trouble trouble, const thole_error *error)
{
    metric_count(watch->cells, METRIC_NATS_ERRORS, metric_error_class(error->status), 1);
    switch (trouble) {
    case CONNECTION_NOT_MADE:
        if (says_waiting(watch, clock_monotonic_ms(), error->status))
            log_line(watch->state_level, watch->area, "waiting: %s", error->text);
        break;
    case CONNECTION_FORBIDS: say_forbidden(watch, error); break;
    }
}

void nats_watch_failed(struct nats_watch *watch, thole_status status)
{
    assert(status != THOLE_OK);
    metric_count(watch->cells, METRIC_NATS_ERRORS, metric_error_class(status), 1);
}

size_t nats_error_class(enum request_result result, uint32_t err_code)
{
    if (request_is_full(err_code))
        return NATS_ERRORS_FULL;
    switch (result) {
    case REQUEST_REFUSED: return NATS_ERRORS_REFUSED;
    case REQUEST_UNKNOWN: return NATS_ERRORS_UNANSWERED;
    case REQUEST_BUSY: return NATS_ERRORS_BUSY;
    case REQUEST_ANSWERED:
    case REQUEST_STORED:
    case REQUEST_FAILED: break;
    }
    return NATS_ERRORS_FAILED;
}

void nats_watch_answered(struct nats_watch *watch, enum request_result result, uint32_t err_code)
{
    if (result != REQUEST_STORED && result != REQUEST_ANSWERED)
        metric_count(watch->cells, METRIC_NATS_ERRORS, nats_error_class(result, err_code), 1);
}

bool nats_watch_forbidden(struct nats_watch *watch, uint64_t within_ms, thole_error *ret)
{
    uint64_t const now_ms = clock_monotonic_ms();
    pthread_mutex_lock(&watch->lock);
    bool const recent = watch->forbidden_last_ms != 0 && now_ms - watch->forbidden_last_ms <= within_ms;
    if (recent)
        *ret = watch->forbidden;
    pthread_mutex_unlock(&watch->lock);
    return recent;
}
