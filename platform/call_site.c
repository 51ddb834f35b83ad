#include "call_site.h"
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LINE_BYTES = 1024, NUMBER_BYTES = 32 };

/* Runs `addr2line -f -s -C -e FILE OFFSET`; its two lines, function and file:line. False: it is not there, or
 * knows nothing. */
static bool run_addr2line(const char *file, uintptr_t offset, char function[LINE_BYTES],
                          char line[LINE_BYTES])
{
    char number[NUMBER_BYTES];
    int ends[2], status = 1;
    pid_t pid = -1;
    posix_spawn_file_actions_t actions;
    (void)snprintf(number, sizeof number, "0x%zx", (size_t)offset);
    char *const words[] = {"addr2line", "-f", "-s", "-C", "-e", (char *)(uintptr_t)file, number, NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) /* another thread may start a process now */
        return false;
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    (void)posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool ok = posix_spawnp(&pid, "addr2line", &actions, NULL, words, environ) == 0;
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    FILE *from = fdopen(ends[0], "r");
    ok = ok && from != NULL && fgets(function, LINE_BYTES, from) != NULL &&
         fgets(line, LINE_BYTES, from) != NULL;
    if (from != NULL)
        (void)fclose(from);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    function[strcspn(function, "\n")] = line[strcspn(line, " \n")] = '\0'; /* " (discriminator 2)" */
    return ok && status == 0 && strchr(function, '?') == NULL;
}

/* The program itself is known by argv[0], which need not be a path. */
static const char *path_of(const Dl_info *info, const Elf64_Ehdr *elf, char self[LINE_BYTES])
{
    bool const is_program = getauxval(AT_PHDR) == (uintptr_t)info->dli_fbase + elf->e_phoff;
    ssize_t const len = is_program ? readlink("/proc/self/exe", self, LINE_BYTES - 1) : -1;
    if (len < 0)
        return info->dli_fname;
    self[len] = '\0';
    return self;
}

void call_site_text(const void *address, struct buf *to)
{
    char self[LINE_BYTES] = "", function[LINE_BYTES] = "", line[LINE_BYTES] = "";
    Dl_info info;
    if (address == NULL || dladdr(address, &info) == 0 || info.dli_fbase == NULL) {
        buf_text(to, "unknown");
        return;
    }
    const Elf64_Ehdr *elf = info.dli_fbase;        /* the first page of a loaded object */
    uintptr_t const call = (uintptr_t)address - 1; /* within the call, not after it */
    uintptr_t const offset = elf->e_type == ET_DYN ? call - (uintptr_t)info.dli_fbase : call;
    const char *path = path_of(&info, elf, self), *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    if (run_addr2line(path, offset, function, line))
        buf_printf(to, line[0] == '?' ? "%s in %s" : "%s (%s)", function, line[0] == '?' ? file : line);
    else if (info.dli_sname != NULL)
        buf_printf(to, "%s+0x%zx in %s", info.dli_sname, (size_t)(call - (uintptr_t)info.dli_saddr), file);
    else
        buf_printf(to, "%s+0x%zx", file, (size_t)offset);
}
