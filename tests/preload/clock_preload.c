/*
 * Loaded into a program before libc (LD_PRELOAD): the wall clock shows so many milliseconds more than it is,
 * as the file $THOLE_TEST_CLOCK says at any moment (tests/lib/jumping_clock.h). The monotonic clock stays as
 * it is. A wait until a time of the wall clock ends when the changed clock shows it, as with the kernel's
 * own: an hour later, when the clock goes back an hour meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NANOS INT64_C(1000000000)
enum {
    NANOS_PER_MILLI = 1000000,
    LOOK_MS = 20,
    WALL_TIMES_FROM_S = 1000000000 /* no machine is up so long */
};

typedef int gettime_fn(clockid_t id, struct timespec *ret);
typedef int timedwait_fn(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until);

static _Atomic int64_t none;
static _Atomic int64_t *ahead_ms = &none;
static gettime_fn *real_gettime;
static timedwait_fn *real_timedwait;

static void find_real(void)
{
    real_gettime = (gettime_fn *)dlsym(RTLD_NEXT, "clock_gettime");
    real_timedwait = (timedwait_fn *)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (real_timedwait == NULL) /* x86-64 has an older one, too */
        real_timedwait = (timedwait_fn *)dlsym(RTLD_NEXT, "pthread_cond_timedwait");
}

__attribute__((constructor)) static void open_clock(void)
{
    const char *path = getenv("THOLE_TEST_CLOCK");
    int const fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof *ahead_ms, PROT_READ, MAP_SHARED, fd, 0);
    find_real();
    if (map != MAP_FAILED)
        ahead_ms = map;
    if (fd >= 0)
        (void)close(fd);
}

static int64_t to_nanos(const struct timespec *time)
{
    return (int64_t)time->tv_sec * NANOS + time->tv_nsec;
}

static struct timespec from_nanos(int64_t nanos)
{
    return (struct timespec){.tv_sec = (time_t)(nanos / NANOS), .tv_nsec = (long)(nanos % NANOS)};
}

static int64_t ahead(void)
{
    return atomic_load(ahead_ms) * NANOS_PER_MILLI;
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
    if (real_gettime == NULL) /* called by another library's constructor */
        find_real();
    int const result = real_gettime(id, ret);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        *ret = from_nanos(to_nanos(ret) + ahead());
    return result;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    *ret = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *ret)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (ret != NULL)
        *ret = now.tv_sec;
    return now.tv_sec;
}

/* By which clock a condition waits is not to be seen; the number tells. */
int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    if (real_timedwait == NULL)
        find_real();
    if (until->tv_sec < WALL_TIMES_FROM_S)
        return real_timedwait(cond, mutex, until);
    for (;;) {
        struct timespec now;
        (void)real_gettime(CLOCK_REALTIME, &now);
        int64_t const left = to_nanos(until) - ahead() - to_nanos(&now);
        int64_t const look = (int64_t)LOOK_MS * NANOS_PER_MILLI;
        struct timespec const part = from_nanos(to_nanos(&now) + (left < 0 ? 0 : left < look ? left : look));
        int const result = real_timedwait(cond, mutex, &part);
        if (result != ETIMEDOUT || left <= look)
            return result;
    }
}
