#include "service_notify.h"
#include "clock.h"
#include "memory.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WATCHDOG_MIN_MS = 10, LIVE_TEXT_BYTES = 4096, SEND_S = 5 };

struct service_notify {
    const struct metrics *metrics;
    struct sockaddr_un address;
    socklen_t address_len;
    int socket;
    uint64_t period_ms; /* 0: there is no thread */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
};

struct service_wish service_wish_take(void)
{
    struct service_wish wish = {.watchdog_ms = 0};
    const char *const address = getenv("NOTIFY_SOCKET"), *const us = getenv("WATCHDOG_USEC"),
                      *const pid = getenv("WATCHDOG_PID");
    if (address != NULL && strlen(address) < sizeof wish.address)
        (void)snprintf(wish.address, sizeof wish.address, "%s", address);
    if (us != NULL && (pid == NULL || strtol(pid, NULL, 10) == (long)getpid()))
        wish.watchdog_ms = strtoull(us, NULL, 10) / 1000;
    (void)unsetenv("NOTIFY_SOCKET");
    (void)unsetenv("WATCHDOG_USEC");
    (void)unsetenv("WATCHDOG_PID");
    return wish;
}

static bool service_notify_is_live(const struct service_notify *notify)
{
    struct buf reasons;
    buf_init(&reasons, LIVE_TEXT_BYTES);
    bool const live = metrics_live(notify->metrics, clock_monotonic_ms(), &reasons);
    buf_release(&reasons);
    return live;
}

static void *service_notify_watchdog(void *arg)
{
    struct service_notify *const notify = arg;
    (void)pthread_mutex_lock(&notify->lock);
    while (!notify->stopping) {
        if (service_notify_is_live(notify))
            service_notify_say(notify, "WATCHDOG=1");
        struct timespec const until = clock_timespec(clock_monotonic_ms() + notify->period_ms);
        while (!notify->stopping &&
               pthread_cond_timedwait(&notify->changed, &notify->lock, &until) != ETIMEDOUT)
            continue;
    }
    (void)pthread_mutex_unlock(&notify->lock);
    return NULL;
}

static thole_status set_address(struct service_notify *notify, const char *text, thole_error *reterr)
{
    size_t const len = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || len < 2 || len >= sizeof notify->address.sun_path)
        return thole_fail(reterr, THOLE_INVALID,
                          "NOTIFY_SOCKET is \"%.100s\", which is neither a path nor @NAME", text);
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, len);
    if (text[0] ==
        '@') /* a name of the abstract namespace begins with a zero byte, and does not end with one */
        notify->address.sun_path[0] = '\0';
    notify->address_len =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (text[0] == '/' ? 1 : 0));
    struct timeval const patience = {.tv_sec = SEND_S};
    notify->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (notify->socket < 0 ||
        setsockopt(notify->socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) != 0)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "no socket for NOTIFY_SOCKET: %s", strerror(errno));
    return THOLE_OK;
}

static thole_status service_notify_start_thread(struct service_notify *notify, thole_error *reterr)
{
    int const error = pthread_create(&notify->thread, NULL, service_notify_watchdog, notify);
    if (error == 0)
        return THOLE_OK;
    notify->period_ms = 0;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "no thread for the watchdog: %s", strerror(error));
}

thole_status service_notify_start(const struct service_wish *wish, const struct metrics *metrics,
                                  struct service_notify **ret, thole_error *reterr)
{
    *ret = NULL;
    if (wish->address[0] == '\0')
        return THOLE_OK;
    struct service_notify *const notify = memory_new(sizeof *notify);
    pthread_condattr_t monotonic;
    notify->metrics = metrics;
    notify->socket = -1;
    (void)pthread_mutex_init(&notify->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&notify->changed, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    thole_status status = set_address(notify, wish->address, reterr);
    if (status == THOLE_OK && wish->watchdog_ms > 0) {
        notify->period_ms = wish->watchdog_ms / 2 < WATCHDOG_MIN_MS ? WATCHDOG_MIN_MS : wish->watchdog_ms / 2;
        status = service_notify_start_thread(notify, reterr);
    }
    if (status != THOLE_OK) {
        service_notify_stop(notify);
        return status;
    }
    *ret = notify;
    return THOLE_OK;
}

void service_notify_say(const struct service_notify *notify, const char *state)
{
    ssize_t sent = -1;
    if (notify == NULL)
        return;
    do
        sent = sendto(notify->socket, state, strlen(state), MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->address, notify->address_len);
    while (sent < 0 && errno == EINTR);
}

void service_notify_stop(struct service_notify *notify)
{
    if (notify == NULL)
        return;
    if (notify->period_ms > 0) {
        (void)pthread_mutex_lock(&notify->lock);
        notify->stopping = true;
        (void)pthread_cond_signal(&notify->changed);
        (void)pthread_mutex_unlock(&notify->lock);
        (void)pthread_join(notify->thread, NULL);
    }
    if (notify->socket >= 0)
        (void)close(notify->socket);
    (void)pthread_cond_destroy(&notify->changed);
    (void)pthread_mutex_destroy(&notify->lock);
    free(notify);
}
