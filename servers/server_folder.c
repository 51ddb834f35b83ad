/* Folders that servers are given. */
#include "servers.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
