#include "wrap_played.h"
#include "clock.h"
#include "logged.h"
#include "thole_cunit.h"
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

struct fiber {
    pthread_t thread;
    sem_t go;
    void *(*main)(void *);
    void *arg;
    bool ends, detached, waits, timed_out;
    const void *cond; /* reason of the wait: a condition, or the end of another thread */
    uint64_t until_ms;
};

struct played play;
static struct fiber fibers[FIBERS_MAX];
static size_t fibers_len;
static struct fiber *runs; /* NULL: the script */
static sem_t back;

/* ---- the log of calls, and how calls end ---- */

void played_say(const char *fmt, ...)
{
    char text[1200];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    for (char *at = text; *at != '\0'; at++)
        if (*at == '\n')
            *at = '~';
    (void)fprintf(play.said, "%6" PRIu64 " %s\n", play.now_ms, text);
}

void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...) THOLE_PRINTF(4, 5);
void __wrap_log_line_of(enum log_level level, const char *area, const struct log_fields *fields,
                        const char *fmt, ...)
{
    char text[600];
    va_list args;
    va_start(args, fmt);
    logged_text(text, sizeof text, fields, fmt, args);
    va_end(args);
    if (level != LOG_LEVEL_INFO || !play.brief)
        played_say("logs %d %s: %s", (int)level, area, text);
}

const char *played_word(size_t call, char room[64])
{
    const char **const words = &play.ends[call];
    size_t const len = *words == NULL ? 0 : strcspn(*words, " ");
    (void)snprintf(room, 64, "%.*s", len == 0 ? 4 : (int)len, len == 0 ? "well" : *words);
    if (len > 0)
        *words += len + ((*words)[len] == ' ');
    return room;
}

thole_status played_status(const char *how, thole_error *reterr)
{
    for (int i = 1; i < 64; i++)
        if (strcasecmp(thole_status_name((thole_status)i), how) == 0)
            return thole_fail(reterr, (thole_status)i, "played %s\n\xc3\xa4", how);
    CU_ASSERT_STRING_EQUAL(how, "well");
    return THOLE_OK;
}

thole_status played_ends(size_t call, thole_error *reterr)
{
    char room[64];
    return played_status(played_word(call, room), reterr);
}

/* ---- threads ---- */

static void give_back(void)
{
    struct fiber *const own = runs;
    (void)sem_post(&back);
    while (sem_wait(&own->go) != 0)
        continue;
}

static int wake(const void *cond)
{
    for (size_t i = 0; i < fibers_len; i++)
        if (fibers[i].waits && fibers[i].cond == cond)
            fibers[i].waits = false;
    return 0;
}

static void *fiber_main(void *arg)
{
    struct fiber *const fiber = arg;
    while (sem_wait(&fiber->go) != 0)
        continue;
    (void)fiber->main(fiber->arg);
    fiber->ends = true;
    wake(fiber);
    (void)sem_post(&back);
    return NULL;
}

int __real_pthread_join(pthread_t thread, void **ret);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg);
static struct fiber *new_fiber(void *(*main)(void *), void *arg)
{
    if (fibers_len == FIBERS_MAX)
        abort();
    struct fiber *const fiber = &fibers[fibers_len++];
    *fiber = (struct fiber){.main = main, .arg = arg};
    (void)sem_init(&fiber->go, 0, 0);
    if (__real_pthread_create(&fiber->thread, NULL, fiber_main, fiber) != 0)
        abort();
    return fiber;
}

void played_thread(void *(*main)(void *), void *arg)
{
    new_fiber(main, arg)->detached = true;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*main)(void *), void *arg)
{
    int detached = PTHREAD_CREATE_JOINABLE;
    size_t stack = 0;
    if (play.no_threads)
        return EAGAIN;
    if (attr != NULL) {
        (void)pthread_attr_getdetachstate(attr, &detached);
        (void)pthread_attr_getstacksize(attr, &stack);
        SAY_ALWAYS("a thread with %zu bytes of stack", stack);
    }
    struct fiber *const fiber = new_fiber(main, arg);
    fiber->detached = detached == PTHREAD_CREATE_DETACHED;
    *thread = fiber->thread;
    return 0;
}

static struct fiber *fiber_of(pthread_t thread)
{
    size_t i = 0;
    while (i < fibers_len && !pthread_equal(fibers[i].thread, thread))
        i++;
    return i < fibers_len ? &fibers[i] : NULL;
}

int __wrap_pthread_detach(pthread_t thread)
{
    fiber_of(thread)->detached = true;
    return 0;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    (void)thread;
    if (strlen(name) > 15)
        abort();
    return 0;
}

static void wait_for(const void *cond, pthread_mutex_t *lock, uint64_t until_ms)
{
    if (runs == NULL)
        abort(); /* the script must not wait */
    runs->waits = true;
    runs->timed_out = false;
    runs->cond = cond;
    runs->until_ms = until_ms;
    if (lock != NULL)
        (void)pthread_mutex_unlock(lock);
    give_back();
    if (lock != NULL)
        (void)pthread_mutex_lock(lock);
}

/* The thread is joined in fact at the end, when none of the script's waits for it. */
int __wrap_pthread_join(pthread_t thread, void **ret)
{
    struct fiber *const fiber = fiber_of(thread);
    (void)ret;
    CU_ASSERT_FALSE(fiber->detached);
    fiber->detached = true;
    if (!fiber->ends)
        wait_for(fiber, NULL, UINT64_MAX);
    return 0;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock)
{
    wait_for(cond, lock, UINT64_MAX);
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *until)
{
    struct fiber *const own = runs;
    wait_for(cond, lock, (uint64_t)until->tv_sec * 1000 + (uint64_t)until->tv_nsec / 1000000);
    return own->timed_out ? ETIMEDOUT : 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
    return wake(cond);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
    return wake(cond);
}

/* ---- time ---- */

void played_sleep(uint64_t ms)
{
    wait_for(NULL, NULL, play.now_ms + ms);
}

int __wrap_nanosleep(const struct timespec *pause, struct timespec *rest)
{
    (void)rest;
    played_sleep((uint64_t)pause->tv_sec * 1000 + (uint64_t)pause->tv_nsec / 1000000);
    return 0;
}

uint64_t __wrap_clock_monotonic_ms(void)
{
    return play.now_ms;
}

uint64_t __wrap_clock_monotonic_us(void)
{
    return play.now_ms * 1000;
}

uint64_t __wrap_clock_wall_ms(void)
{
    return 1700000000000 + play.now_ms;
}

struct timespec __wrap_clock_timespec(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

static void run_all(void)
{
    for (size_t i = 0; i < fibers_len; i++)
        if (!fibers[i].waits && !fibers[i].ends) {
            runs = &fibers[i];
            (void)sem_post(&runs->go);
            while (sem_wait(&back) != 0)
                continue;
            runs = NULL;
            i = (size_t)-1; /* may have woken any */
        }
}

void played_until(uint64_t ms)
{
    for (int turns = 0;; turns++) {
        uint64_t next_ms = UINT64_MAX;
        if (turns > 5000) {
            (void)fprintf(stderr, "played_until: for ever\n");
            abort();
        }
        run_all();
        for (size_t i = 0; i < fibers_len; i++)
            if (fibers[i].waits && fibers[i].until_ms < next_ms)
                next_ms = fibers[i].until_ms;
        if (next_ms == UINT64_MAX || next_ms >= ms)
            break;
        play.now_ms = next_ms > play.now_ms ? next_ms : play.now_ms;
        for (size_t i = 0; i < fibers_len; i++)
            if (fibers[i].waits && fibers[i].until_ms <= play.now_ms) {
                fibers[i].waits = false;
                fibers[i].timed_out = true;
            }
    }
    if (ms != UINT64_MAX)
        play.now_ms = ms;
}

ssize_t __wrap_getrandom(void *to, size_t len, unsigned flags)
{
    (void)flags;
    memset(to, ++play.random, len);
    return (ssize_t)len;
}

/* ---- the script ---- */

void played_begin(FILE *said)
{
    play = (struct played){.said = said, .now_ms = 1000};
    fibers_len = 0;
    (void)sem_init(&back, 0, 0);
}

void played_end(void)
{
    for (size_t i = 0; i < fibers_len; i++) {
        if (!fibers[i].ends) {
            (void)fprintf(stderr, "a thread waits for ever\n");
            abort();
        }
        CU_ASSERT_TRUE(fibers[i].detached);
        (void)__real_pthread_join(fibers[i].thread, NULL);
        (void)sem_destroy(&fibers[i].go);
    }
    (void)sem_destroy(&back);
}

void played_line(const char *line, void (*step)(const char *text))
{
    char *const script = strdup(line);
    char *next = script;
    while (next != NULL) {
        char *text = next, *end = NULL;
        next = strstr(text, " | ");
        if (next != NULL) {
            *next = '\0';
            next += 3;
        }
        uint64_t const at_ms = strtoull(text, &end, 10);
        if (end != text)
            played_until(at_ms);
        step(end != text ? end + 1 : text);
        played_until(play.now_ms);
    }
    played_until(UINT64_MAX);
    free(script);
}
