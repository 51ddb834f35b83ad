#include "process_end.h"
#include "worker_crash.h"
#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

uint64_t process_memory_max(const thole_activity_options *options, uint64_t of_all)
{
    bool const own = options->memory_max != 0 && (of_all == 0 || options->memory_max < of_all);
    return own ? options->memory_max : of_all;
}

/* The guard's count and the count that the limit is compared with differ a little: SIGKILL comes a second
 * after the limit. */
static bool cpu_is_used_up(const struct life_message *life, const thole_activity_options *options)
{
    int const number = WIFSIGNALED(life->status) ? WTERMSIG(life->status) : 0;
    return options->cpu_max_s > 0 &&
           (number == SIGXCPU || (number == SIGKILL && life->cpu_ms >= (uint64_t)options->cpu_max_s * 1000));
}

static void process_end_signal_text(const struct life_message *life, const thole_activity_options *options,
                                    char *ret)
{
    int const number = WTERMSIG(life->status);
    char name[SIGNAL_NAME_BYTES];
    (void)signal_name(number, name);
    if (cpu_is_used_up(life, options))
        (void)snprintf(ret, PROCESS_TEXT_MAX,
                       "the process was killed by %s: its CPU time is limited to %" PRIu32 " s", name,
                       options->cpu_max_s);
    else
        (void)snprintf(ret, PROCESS_TEXT_MAX, "the process was killed by %s%s", name,
                       number == SIGKILL ? ", by the system (out of memory) or by somebody" : "");
}

static void ended_text(const struct life_message *life, bool begun, const thole_activity_options *options,
                       char *ret)
{
    if (life->error != 0)
        (void)snprintf(ret, PROCESS_TEXT_MAX, "the guard of the process was killed, and the process with it");
    else if (WIFSIGNALED(life->status))
        process_end_signal_text(life, options, ret);
    else
        (void)snprintf(ret, PROCESS_TEXT_MAX, "the process exited with code %d %s", WEXITSTATUS(life->status),
                       begun ? "instead of returning" : "before the handler was called; its log says why");
    size_t const len = strlen(ret);
    if (options->memory_max > 0 && !cpu_is_used_up(life, options))
        (void)snprintf(ret + len, PROCESS_TEXT_MAX - len,
                       "; its address space is limited to %" PRIu64 " bytes", options->memory_max);
}

const char *process_end_text(enum process_end end, const struct life_message *life, bool begun,
                             const thole_activity_options *options, char ret_text[PROCESS_TEXT_MAX])
{
    switch (end) {
    case PROCESS_RUNS:
    case PROCESS_RETURNED: assert(false); break;
    case PROCESS_ENDED:
        ended_text(life, begun, options, ret_text);
        return cpu_is_used_up(life, options) ? "limit" : "crash";
    case PROCESS_CLOSED:
        (void)snprintf(ret_text, PROCESS_TEXT_MAX, "the process has closed its socket to the worker");
        break;
    case PROCESS_BROKEN:
        (void)snprintf(ret_text, PROCESS_TEXT_MAX,
                       "the process has written to its socket to the worker what is no message");
        break;
    case PROCESS_WALL:
        (void)snprintf(ret_text, PROCESS_TEXT_MAX, "the process was killed after %" PRIu64 " ms, its limit",
                       options->wall_max_ms);
        return "limit";
    }
    return "crash";
}
