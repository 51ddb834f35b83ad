#include "jumping_clock.h"
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* Postgres runs as another user, who may not be able to read the build folder. */
static bool copy_library(const char *to)
{
    struct stat st;
    int const from = open(THOLE_TEST_PROGRAMS "/clock_preload.so", O_RDONLY | O_CLOEXEC);
    int const fd = from < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    bool const good = fd >= 0 && fchmod(fd, 0755) == 0 && fstat(from, &st) == 0 &&
                      sendfile(fd, from, NULL, (size_t)st.st_size) == (ssize_t)st.st_size;
    if (from >= 0)
        (void)close(from);
    return fd >= 0 && close(fd) == 0 && good;
}

bool jumping_clock_open(struct jumping_clock *clock, const char *dir, const char *name)
{
    int const n = snprintf(clock->path, sizeof clock->path, "%s/%s.clock", dir, name);
    (void)snprintf(clock->library, sizeof clock->library, "%s/%s.so", dir, name);
    if (n < 0 || (size_t)n >= sizeof clock->path || !copy_library(clock->library))
        return false;
    int const fd = open(clock->path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    void *map = MAP_FAILED;
    if (fd >= 0 && fchmod(fd, 0644) == 0 && ftruncate(fd, (off_t)sizeof *clock->ahead_ms) == 0)
        map = mmap(NULL, sizeof *clock->ahead_ms, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        (void)close(fd);
    clock->ahead_ms = map == MAP_FAILED ? NULL : map;
    return clock->ahead_ms != NULL;
}

void jumping_clock_use(const struct jumping_clock *clock)
{
    if (clock == NULL) {
        (void)unsetenv("LD_PRELOAD");
        (void)unsetenv("THOLE_TEST_CLOCK");
    } else {
        (void)setenv("LD_PRELOAD", clock->library, 1);
        (void)setenv("THOLE_TEST_CLOCK", clock->path, 1);
    }
}

void jumping_clock_set(struct jumping_clock *clock, int64_t ahead_ms)
{
    atomic_store(clock->ahead_ms, ahead_ms);
}
