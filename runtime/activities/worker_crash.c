#include "worker_crash.h"
#include "message.h"
#include <ctype.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { STAT_FIELDS_AFTER_NAME = 50 }; /* the 52nd is the exit code, as of waitpid() */

const char *signal_name(int number, char ret[SIGNAL_NAME_BYTES])
{
    const char *const name = sigabbrev_np(number);
    if (name != NULL)
        (void)snprintf(ret, SIGNAL_NAME_BYTES, "SIG%s", name);
    else
        (void)snprintf(ret, SIGNAL_NAME_BYTES, "signal %d", number);
    return ret;
}

/* The name, in parentheses, may contain anything: the fields follow the last parenthesis. A zero means
 * nothing: a process that lives, or that we may not look at, has that too. */
void worker_crash_from_stat(const char *stat, struct worker_crash *ret)
{
    const char *at = strrchr(stat, ')');
    *ret = (struct worker_crash){.kind = WORKER_CRASH_NONE};
    for (int i = 0; i < STAT_FIELDS_AFTER_NAME && at != NULL; i++)
        at = strchr(at + 1, ' ');
    int const status = at == NULL ? 0 : (int)strtol(at, NULL, 10);
    if (status == 0)
        return;
    if (WIFSIGNALED(status))
        *ret = (struct worker_crash){.kind = WORKER_CRASH_KILLED, .number = WTERMSIG(status)};
    else if (WIFEXITED(status))
        *ret = (struct worker_crash){.kind = WORKER_CRASH_CODE, .number = WEXITSTATUS(status)};
}

/* A try that there can be: the database takes no other numbers. */
static bool can_be(const struct worker_crash_try *in)
{
    return in->execution <= INT64_MAX && in->activity_id <= INT64_MAX && in->attempt <= INT64_MAX &&
           in->try_number <= INT32_MAX && in->instance_len <= sizeof in->instance &&
           id_check((thole_slice){in->instance, in->instance_len}, NULL) == THOLE_OK;
}

bool worker_crash_take(const struct worker_crash_page *page, struct worker_crash *ret,
                       char ret_worker[WORKER_CRASH_WORKER_BYTES])
{
    uint8_t fault;
    memcpy(ret_worker, page->worker, WORKER_CRASH_WORKER_BYTES);
    memcpy(ret, &page->crash, sizeof *ret);
    memcpy(&fault, &ret->fault, sizeof fault);
    ret->fault = fault != 0; /* as it came from elsewhere it may be neither 0 nor 1 */
    if (ret->kind != WORKER_CRASH_SIGNAL && ret->kind != WORKER_CRASH_EXIT)
        *ret = (struct worker_crash){.kind = WORKER_CRASH_NONE}; /* no other kind is known */
    if (!can_be(&ret->in))
        ret->in = (struct worker_crash_try){.instance_len = 0};
    size_t const len = strnlen(ret_worker, WORKER_CRASH_WORKER_BYTES);
    for (size_t i = 0; i < len; i++)
        if (strchr("-_", ret_worker[i]) == NULL && !isalnum((unsigned char)ret_worker[i]))
            return false;
    return len > 0 && len < WORKER_CRASH_WORKER_BYTES;
}

static const char *worker_crash_place(const struct worker_crash *crash)
{
    return crash->in.instance_len > 0 ? "in its handler" : "on a thread that is no handler's";
}

const char *worker_crash_text(const struct worker_crash *crash, char ret[WORKER_CRASH_TEXT_BYTES])
{
    char name[SIGNAL_NAME_BYTES], at[40] = "";
    switch (crash->kind) {
    case WORKER_CRASH_NONE:
        (void)snprintf(ret, WORKER_CRASH_TEXT_BYTES,
                       "it ended without a report: SIGKILL, or _exit() was called");
        break;
    case WORKER_CRASH_SIGNAL:
        if (crash->fault)
            (void)snprintf(at, sizeof at, ", at address 0x%" PRIx64, crash->address);
        (void)snprintf(ret, WORKER_CRASH_TEXT_BYTES, "%s %s%s", signal_name(crash->number, name),
                       worker_crash_place(crash), at);
        break;
    case WORKER_CRASH_EXIT:
        (void)snprintf(ret, WORKER_CRASH_TEXT_BYTES, "exit(%d) %s", crash->number, worker_crash_place(crash));
        break;
    case WORKER_CRASH_KILLED:
        (void)snprintf(ret, WORKER_CRASH_TEXT_BYTES, "killed by %s%s", signal_name(crash->number, name),
                       crash->number == SIGKILL ? ", by the system (out of memory) or by somebody" : "");
        break;
    case WORKER_CRASH_CODE:
        (void)snprintf(ret, WORKER_CRASH_TEXT_BYTES, "it ended with code %d without being asked to stop",
                       crash->number);
        break;
    }
    return ret;
}
