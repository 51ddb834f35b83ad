#include "resident.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

uint64_t resident_bytes(void)
{
    char text[128];
    uint64_t pages = 0;
    int const fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t const n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        (void)close(fd);
    text[n < 0 ? 0 : n] = '\0';
    if (sscanf(text, "%*u %" SCNu64, &pages) != 1)
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}
