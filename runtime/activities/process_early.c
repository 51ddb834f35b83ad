/* The first steps of processes that are forked early. */
#include "process_early.h"
#include "sanitizers.h"
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

int process_other_threads(void)
{
    int threads = 1;
#if !SANITIZED_THREAD /* ThreadSanitizer has a thread of its own */
    char line[128];
    bool found = false;
    FILE *const file = fopen("/proc/self/status", "re");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, "Threads:", 8) == 0;
        if (found)
            threads = (int)strtol(line + 8, NULL, 10);
    }
    if (file != NULL)
        (void)fclose(file);
#endif
    return threads > 1 ? threads - 1 : 0;
}

void process_open_standard_files(void)
{
    int fd;
    while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) /* not CLOEXEC: they are standard */
        ;
    if (fd >= 0)
        (void)close(fd);
}

void process_close_all_but(const int *keep, size_t n)
{
    unsigned from = STDERR_FILENO + 1, next;
    do {
        next = ~0U;
        for (size_t i = 0; i < n; i++)
            if ((unsigned)keep[i] >= from && (unsigned)keep[i] < next)
                next = (unsigned)keep[i];
        if (next > from)
            (void)close_range(from, next == ~0U ? next : next - 1, 0);
        from = next + 1;
    } while (next != ~0U);
}

static void set_files(void)
{
    int const empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (empty >= 0)
        (void)dup2(empty, STDIN_FILENO);
    if (empty > STDERR_FILENO)
        (void)close(empty);
    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
}

static void process_early_set_signals(void)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTTIN, SIGTTOU, SIGTSTP};
    sigset_t none;
    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL);
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        (void)signal(ignored[i], SIG_IGN);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

void process_settle(const char *name, const int *keep, size_t n)
{
    (void)setpgid(0, 0);
    (void)prctl(PR_SET_NAME, name);
    process_close_all_but(keep, n);
    set_files();
    process_early_set_signals();
}
