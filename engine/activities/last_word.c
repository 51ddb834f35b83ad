#include "last_word.h"
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

/* The name, in parentheses, may hold anything: what counts comes behind the last one. A zero says nothing: a
 * process that lives, or that we may not look at, has that too. */
void last_word_from_stat(const char *stat, struct last_word *ret)
{
    const char *at = strrchr(stat, ')');
    *ret = (struct last_word){.kind = LAST_WORD_NONE};
    for (int i = 0; i < STAT_FIELDS_AFTER_NAME && at != NULL; i++)
        at = strchr(at + 1, ' ');
    int const status = at == NULL ? 0 : (int)strtol(at, NULL, 10);
    if (status == 0)
        return;
    if (WIFSIGNALED(status))
        *ret = (struct last_word){.kind = LAST_WORD_KILLED, .number = WTERMSIG(status)};
    else if (WIFEXITED(status))
        *ret = (struct last_word){.kind = LAST_WORD_CODE, .number = WEXITSTATUS(status)};
}

static const char *where(const struct last_word *word)
{
    return word->in.instance_len > 0 ? "in its handler" : "on a thread that is no handler's";
}

const char *last_word_text(const struct last_word *word, char ret[LAST_WORD_TEXT_BYTES])
{
    char name[SIGNAL_NAME_BYTES], at[40] = "";
    switch (word->kind) {
    case LAST_WORD_NONE:
        (void)snprintf(ret, LAST_WORD_TEXT_BYTES, "it ended without a word: SIGKILL, or _exit() was called");
        break;
    case LAST_WORD_SIGNAL:
        if (word->fault)
            (void)snprintf(at, sizeof at, ", at address 0x%" PRIx64, word->address);
        (void)snprintf(ret, LAST_WORD_TEXT_BYTES, "%s %s%s", signal_name(word->number, name), where(word),
                       at);
        break;
    case LAST_WORD_EXIT:
        (void)snprintf(ret, LAST_WORD_TEXT_BYTES, "exit(%d) %s", word->number, where(word));
        break;
    case LAST_WORD_KILLED:
        (void)snprintf(ret, LAST_WORD_TEXT_BYTES, "killed by %s%s", signal_name(word->number, name),
                       word->number == SIGKILL ? ", by the system (out of memory) or by somebody" : "");
        break;
    case LAST_WORD_CODE:
        (void)snprintf(ret, LAST_WORD_TEXT_BYTES, "it ended with code %d without being asked to stop",
                       word->number);
        break;
    }
    return ret;
}
