/* Folders that servers are given. */
#include "file_fault.h"
#include "servers.h"
#include "write_flaw.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PRIVATE_PATH_BYTES = 4096 };

thole_status server_dir_create(const char *prefix, char ret_dir[SERVER_PATH_BYTES], thole_error *reterr)
{
    const char *below = getenv("TMPDIR");
    if (below == NULL || below[0] != '/')
        below = "/tmp";
    int const n = snprintf(ret_dir, SERVER_PATH_BYTES, "%s/%s.XXXXXX", below, prefix);
    if (n < 0 || n >= SERVER_PATH_BYTES)
        return thole_fail(reterr, THOLE_INVALID, "the path of a folder in %s is too long for a socket",
                          below);
    if (mkdtemp(ret_dir) == NULL)
        return thole_fail(reterr, THOLE_UNAVAILABLE, "cannot make a folder in %s: %s", below,
                          strerror(errno));
    (void)chmod(ret_dir, 0711); /* user postgres must get through to its own folder inside */
    return THOLE_OK;
}

thole_status server_write_private(const char *path, const char *text, thole_error *reterr)
{
    char fresh[PRIVATE_PATH_BYTES];
    size_t const len = strlen(text);
    int const n = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof fresh)
        return thole_fail(reterr, THOLE_INVALID, "the path %s is longer than %zu bytes", path,
                          sizeof fresh - 5);
    (void)unlink(fresh); /* of a run that was killed */
    int const fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = fd < 0 ? errno : write_whole(fd, text, len);
    if (fd >= 0 && close(fd) != 0 && error == 0)
        error = errno;
    if (error == 0 && rename(fresh, path) == 0)
        return THOLE_OK;
    error = error == 0 ? errno : error;
    (void)unlink(fresh); /* may contain a password */
    return file_fault_write(path, error, reterr);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    (void)remove(path);
    return 0;
}

void server_dir_remove(const char *dir)
{
    if (dir != NULL && dir[0] != '\0')
        (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
