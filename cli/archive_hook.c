#include "archive_hook.h"
#include "file_fault.h"
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

extern char **environ;

static const char not_purged[] = "nothing of this archive was purged";

/* The command's stdout goes to @p out: this program's own has only results. */
static thole_status archive_hook_begin(const char *command, const char *path, int out, pid_t *ret,
                                       thole_error *reterr)
{
    char *words[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t)command,
                     (char *)(uintptr_t) "sh", (char *)(uintptr_t)path,  NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0)
        return thole_fail(reterr, THOLE_NOMEM, "no memory to run a command");
    (void)posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    (void)posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int const failed = posix_spawnp(ret, "sh", &actions, NULL, words, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failed == 0 ? THOLE_OK
                       : thole_fail(reterr, THOLE_UNAVAILABLE, "cannot run sh: %s", strerror(failed));
}

/* @p then: what follows from a failure. */
static thole_status archive_hook_end(pid_t pid, const char *command, const char *then, thole_error *reterr)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return thole_fail(reterr, THOLE_UNAVAILABLE, "%.200s: %s", command, strerror(errno));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "%.200s: %s %d; %s", command,
                      WIFEXITED(status) ? "exit code" : "ended by signal",
                      WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), then);
}

thole_status archive_hook_send(const char *command, const char *path, thole_error *reterr)
{
    pid_t pid;
    THOLE_TRY(archive_hook_begin(command, path, STDERR_FILENO, &pid, reterr));
    return archive_hook_end(pid, command, not_purged, reterr);
}

/* Whether all that comes from @p from is what the file has. */
static bool archive_hook_is_same(int from, FILE *file)
{
    char a[CHUNK_BYTES], b[CHUNK_BYTES];
    bool same = true;
    for (ssize_t n; (n = read(from, a, sizeof a)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        same = same && fread(b, 1, (size_t)n, file) == (size_t)n && memcmp(a, b, (size_t)n) == 0;
    }
    return same && fgetc(file) == EOF && !ferror(file);
}

thole_status archive_hook_compare(const char *command, const char *path, thole_error *reterr)
{
    int ends[2];
    pid_t pid;
    FILE *const file = fopen(path, "re");
    if (file == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        int const why = errno;
        if (file != NULL)
            (void)fclose(file);
        return file_fault_read(path, why, reterr);
    }
    thole_status status = archive_hook_begin(command, path, ends[1], &pid, reterr);
    (void)close(ends[1]);
    bool same = false;
    if (status == THOLE_OK) {
        same = archive_hook_is_same(ends[0], file);
        status = archive_hook_end(pid, command, not_purged, reterr);
    }
    (void)close(ends[0]);
    (void)fclose(file);
    if (status != THOLE_OK || same)
        return status;
    return thole_fail(reterr, THOLE_CORRUPT, "%.200s: what came back is not %.300s; %s", command, path,
                      not_purged);
}

thole_status archive_hook_fetch(const char *command, const char *path, char ret[ARCHIVE_FETCHED_BYTES],
                                thole_error *reterr)
{
    const char *const folder = getenv("TMPDIR");
    pid_t pid;
    (void)snprintf(ret, ARCHIVE_FETCHED_BYTES, "%s/thole-archive-XXXXXX",
                   folder == NULL || folder[0] == '\0' ? "/tmp" : folder);
    int const to = mkostemp(ret, O_CLOEXEC);
    if (to < 0)
        return file_fault_write(ret, errno, reterr);
    thole_status status = archive_hook_begin(command, path, to, &pid, reterr);
    if (status == THOLE_OK)
        status = archive_hook_end(pid, command, "nothing of this archive was restored", reterr);
    (void)close(to);
    if (status != THOLE_OK)
        (void)unlink(ret);
    return status;
}
