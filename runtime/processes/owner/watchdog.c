#include "watchdog.h"
#include "log.h"
#include "memory.h"
#include "resident.h"
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 200,
    QUIET_LOOKS = 10, /* without code running: then it sleeps */
    WARN_MS = 1000,
    GIVE_BACK_MS = 1000, /* at most so often while code runs */
    MEBIBYTE = 1024 * 1024,
    GROWTH_BYTES = 64 * MEBIBYTE,       /* of the process, after which free memory is given back, */
    QUIET_GROWTH_BYTES = 16 * MEBIBYTE, /* and when it has become quiet */
    GROWTH_SHARE = 8,                   /* or an eighth, if that is more: a large one is not searched often */
    SAY_MS = 500, /* a thread that gets SIGABRT must begin its report within this time */
    NANOS_PER_MILLI = 1000000,
};

struct watchdog {
    struct engine_host *engine;
    struct crash_page *page;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake; /* monotonic */
    atomic_bool asleep;
    bool stopping;
    uint64_t warned[CRASH_PLACES_MAX]; /* begin of the turn that it warned about */
    uint64_t resident, given_back_ms;  /* memory of the process when free memory was given back last */
    uint64_t resident_quiet;           /* likewise, the last time in a quiet phase */
};

static void watchdog_warn(const struct watchdog *dog, const struct crash_place *place, uint64_t ms)
{
    char limit[64] = "";
    uint64_t const turn_limit = dog->engine->options.turn_limit_ms;
    if (turn_limit != 0)
        (void)snprintf(limit, sizeof limit, "; after %" PRIu64 " ms it counts as a crash", turn_limit);
    thole_slice const instance = {place->instance, place->instance_len};
    log_line_of(LOG_LEVEL_WARN, "partition", LOG_INSTANCE(place->partition, instance, place->execution),
                "the code of %s has not returned for %" PRIu64 " ms, at event %" PRIu64
                "; the partitions of its thread wait for it%s",
                place->orchestration, ms, place->event, limit);
}

static void watchdog_pause(uint64_t ms)
{
    struct timespec const time = {.tv_sec = (time_t)(ms / 1000),
                                  .tv_nsec = (long)(ms % 1000) * NANOS_PER_MILLI};
    (void)nanosleep(&time, NULL);
}

/* The shard's own thread reports where it is, and dies; if it cannot, the watchdog reports it. */
static void end_turn(struct watchdog *dog, size_t i)
{
    uint64_t const limit = dog->engine->options.turn_limit_ms;
    atomic_store(&dog->page->overdue_ms, limit);
    (void)pthread_kill(dog->engine->shards[i].thread, SIGABRT);
    watchdog_pause(SAY_MS);
    crash_say_endless(dog->page, (int)i, limit);
    watchdog_pause(CRASH_WAIT_MS);
    (void)kill(getpid(), SIGKILL);
}

static void watchdog_look(struct watchdog *dog)
{
    uint64_t const now = clock_monotonic_ms(), limit = dog->engine->options.turn_limit_ms;
    for (size_t i = 0; i < dog->engine->shards_len; i++) {
        const struct crash_place *const place = &dog->page->places[i];
        uint64_t const since = atomic_load(&place->since_ms),
                       ms = since == 0 || since > now ? 0 : now - since;
        struct crash_place copy;
        if (ms >= WARN_MS && dog->warned[i] != since && crash_watch_place(place, since, &copy)) {
            dog->warned[i] = since;
            watchdog_warn(dog, &copy, ms);
        }
        if (limit != 0 && ms >= limit)
            end_turn(dog, i);
    }
}

/* Grows with each run; *ret_runs: whether code runs now. */
static uint64_t watchdog_activity(const struct watchdog *dog, bool *ret_runs)
{
    uint64_t sum = 0;
    *ret_runs = false;
    for (size_t i = 0; i < dog->engine->shards_len; i++) {
        sum += atomic_load(&dog->page->places[i].runs);
        *ret_runs |= atomic_load(&dog->page->places[i].since_ms) != 0;
    }
    return sum;
}

static bool has_grown(uint64_t *since, uint64_t resident, uint64_t growth)
{
    uint64_t const share = *since / GROWTH_SHARE;
    if (resident < *since)
        *since = resident;
    return resident > *since + (growth > share ? growth : share);
}

/* malloc keeps memory that was freed between used parts, and in each thread's arena: 190 of 445 MB after
 * 1,000,000 starts, 540 of 1,350 MB after some thousand messages of 120 kB. */
static void give_memory_back(struct watchdog *dog)
{
    (void)malloc_trim(0);
    dog->resident = resident_bytes();
    dog->given_back_ms = clock_monotonic_ms();
}

static void look_at_memory(struct watchdog *dog)
{
    if (clock_monotonic_ms() >= dog->given_back_ms + GIVE_BACK_MS &&
        has_grown(&dog->resident, resident_bytes(), GROWTH_BYTES))
        give_memory_back(dog);
}

/* Memory that was in use when memory was given back last may be free now, although the process has not grown
 * since. */
static void look_at_memory_when_quiet(struct watchdog *dog)
{
    if (!has_grown(&dog->resident_quiet, resident_bytes(), QUIET_GROWTH_BYTES))
        return;
    give_memory_back(dog);
    dog->resident_quiet = dog->resident;
}

static void sleep_until_stirred(struct watchdog *dog, uint64_t seen)
{
    bool runs;
    atomic_store(&dog->asleep, true);
    /* a run that begins now sees that the watchdog sleeps */
    bool const quiet = watchdog_activity(dog, &runs) == seen && !runs;
    while (quiet && atomic_load(&dog->asleep) && !dog->stopping)
        (void)pthread_cond_wait(&dog->wake, &dog->lock);
    atomic_store(&dog->asleep, false);
}

static void watchdog_sleep(struct watchdog *dog)
{
    struct timespec const until = clock_timespec(clock_monotonic_ms() + LOOK_MS);
    (void)pthread_cond_timedwait(&dog->wake, &dog->lock, &until);
}

static void *watchdog_watch(void *arg)
{
    struct watchdog *const dog = arg;
    uint64_t seen = UINT64_MAX;
    unsigned quiet = 0;
    (void)pthread_mutex_lock(&dog->lock);
    while (!dog->stopping) {
        bool runs;
        uint64_t const now = watchdog_activity(dog, &runs);
        quiet = runs || now != seen ? 0 : quiet + 1;
        seen = now;
        watchdog_look(dog);
        if (quiet < QUIET_LOOKS) {
            look_at_memory(dog);
            watchdog_sleep(dog);
            continue;
        }
        look_at_memory_when_quiet(dog);
        sleep_until_stirred(dog, seen);
    }
    (void)pthread_mutex_unlock(&dog->lock);
    return NULL;
}

void watchdog_stir(struct watchdog *watchdog)
{
    if (watchdog == NULL || !atomic_load(&watchdog->asleep))
        return;
    (void)pthread_mutex_lock(&watchdog->lock);
    atomic_store(&watchdog->asleep, false);
    (void)pthread_cond_signal(&watchdog->wake);
    (void)pthread_mutex_unlock(&watchdog->lock);
}

thole_status watchdog_start(struct engine_host *engine, struct watchdog **ret, thole_error *reterr)
{
    struct watchdog *const dog = memory_new(sizeof *dog);
    pthread_condattr_t monotonic;
    dog->engine = engine;
    dog->page = engine->options.crash_page;
    (void)pthread_mutex_init(&dog->lock, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&dog->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    if (pthread_create(&dog->thread, NULL, watchdog_watch, dog) != 0) {
        (void)pthread_mutex_destroy(&dog->lock);
        (void)pthread_cond_destroy(&dog->wake);
        free(dog);
        return thole_fail(reterr, THOLE_NOMEM, "cannot start the watchdog's thread");
    }
    *ret = dog;
    return THOLE_OK;
}

void watchdog_stop(struct watchdog *watchdog)
{
    if (watchdog == NULL)
        return;
    (void)pthread_mutex_lock(&watchdog->lock);
    watchdog->stopping = true;
    (void)pthread_cond_signal(&watchdog->wake);
    (void)pthread_mutex_unlock(&watchdog->lock);
    (void)pthread_join(watchdog->thread, NULL);
    (void)pthread_mutex_destroy(&watchdog->lock);
    (void)pthread_cond_destroy(&watchdog->wake);
    free(watchdog);
}
