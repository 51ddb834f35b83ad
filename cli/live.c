#include "live.h"
#include "client_internal.h"
#include "clock.h"
#include "terminal.h"
#include <errno.h>

enum { PAUSE_MS = 200 };

struct live {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool heard; /* under lock: an instance began or ended since the last drawing */
};

static void on_event(void *arg, const struct delivery *delivery)
{
    struct live *live = arg;
    (void)delivery;
    pthread_mutex_lock(&live->lock);
    live->heard = true;
    pthread_cond_signal(&live->changed);
    pthread_mutex_unlock(&live->lock);
}

static void live_init(struct live *live)
{
    *live = (struct live){.heard = false};
    (void)pthread_mutex_init(&live->lock, NULL);
    clock_condition_init(&live->changed);
}

static void live_wait(struct live *live, uint64_t every_ms)
{
    struct timespec const pause = clock_timespec(PAUSE_MS);
    struct timespec const until = clock_timespec(clock_monotonic_ms() + every_ms - PAUSE_MS);
    int code = 0;
    (void)nanosleep(&pause, NULL);
    pthread_mutex_lock(&live->lock);
    while (!live->heard && code == 0)
        code = pthread_cond_timedwait(&live->changed, &live->lock, &until);
    live->heard = false;
    pthread_mutex_unlock(&live->lock);
}

static bool may_pass(thole_status status)
{
    return terminal_there() && (status == THOLE_UNAVAILABLE || status == THOLE_TIMEOUT);
}

static int draw_all(const struct cli *cli, struct live *live, uint64_t every_ms, live_draw_fn *draw,
                    void *arg)
{
    for (;;) {
        thole_error error = {.status = THOLE_OK};
        screen_begin();
        error.status = draw(arg, &error);
        screen_end();
        if (ferror(stdout))
            return EXIT_DONE; /* cli_finish() reports it */
        if (error.status != THOLE_OK && !may_pass(error.status))
            return cli_complain(cli, "", &error);
        if (error.status != THOLE_OK)
            cli_note(cli, "%s; trying again", error.text);
        live_wait(live, every_ms);
    }
}

int live_run(const struct cli *cli, thole_client *client, uint64_t every_ms, live_draw_fn *draw, void *arg)
{
    struct live live;
    struct subscription *subscription = NULL;
    struct buf subject;
    thole_error error = {.status = THOLE_OK};
    live_init(&live);
    buf_init(&subject, SUBJECT_BYTES_MAX);
    error.status = subject_event(&subject, client->topology.ns, THOLE_STR(""), THOLE_STR(""), "", &error);
    if (error.status == THOLE_OK)
        error.status = connection_subscribe(client->connection, buf_cstr(&subject), on_event, &live,
                                            &subscription, &error);
    int const code =
        error.status == THOLE_OK ? draw_all(cli, &live, every_ms, draw, arg) : cli_complain(cli, "", &error);
    subscription_close(subscription);
    buf_release(&subject);
    (void)pthread_cond_destroy(&live.changed);
    (void)pthread_mutex_destroy(&live.lock);
    return code;
}
