#include "core_dumps.h"
#include "log.h"
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

/*
 * A limit of 0 bytes stops files alone: a program in core_pattern gets the dump whatever the limit is, except
 * a limit of 1, with which the kernel makes none. Unlike PR_SET_DUMPABLE it leaves debuggers and the files of
 * /proc/self as they are.
 */
bool core_dumps_forbid(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_CORE, &limit) != 0)
        return false;
    if (limit.rlim_max == 0)
        return true; /* cannot be raised to 1; no files, and the usual programs heed it */
    limit.rlim_cur = 1;
    return setrlimit(RLIMIT_CORE, &limit) == 0;
}

void core_dumps_choose(bool full)
{
    if (!full && !core_dumps_forbid())
        log_line(LOG_LEVEL_WARN, "host", "core dumps cannot be turned off, and would hold payloads: %s",
                 strerror(errno));
}
