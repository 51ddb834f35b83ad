/* Where nats-server and Postgres are. */
#include "server_process.h"
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 1024 };

/* The oldest server whose acknowledgements hold: 2.10.23. */
enum { NATS_MAJOR = 2, NATS_MINOR = 10, NATS_PATCH = 23 };

/* Runs `PROGRAM --version` and reads the number out of "nats-server: v2.10.27". */
static bool nats_is_new_enough(const char *program)
{
    struct process version = {.len = 0};
    char line[256], dir[SERVER_PATH_BYTES];
    unsigned major = 0, minor = 0, patch = 0;
    if (access(program, X_OK) != 0 || strlen(program) >= PROCESS_TEXT_BYTES ||
        server_dir_create("thole-v", dir, NULL) != THOLE_OK)
        return false;
    process_arg(&version, "%s", program);
    process_arg(&version, "--version");
    (void)snprintf(version.log, sizeof version.log, "%s/out", dir);
    bool const ran = process_run(&version, NULL) == THOLE_OK;
    process_last_line(version.log, line, sizeof line);
    server_dir_remove(dir);
    const char *number = strrchr(line, 'v');
    if (!ran || number == NULL || sscanf(number, "v%u.%u.%u", &major, &minor, &patch) != 3)
        return false;
    if (major != NATS_MAJOR)
        return major > NATS_MAJOR;
    return minor != NATS_MINOR ? minor > NATS_MINOR : patch >= NATS_PATCH;
}

/* Looks for NAME in the folders of a list separated by colons. */
static bool nats_in(const char *folders, char *ret, size_t cap)
{
    while (folders != NULL && *folders != '\0') {
        size_t const len = strcspn(folders, ":");
        int const n = snprintf(ret, cap, "%.*s/nats-server", (int)len, folders);
        if (len > 0 && n > 0 && (size_t)n < cap && nats_is_new_enough(ret))
            return true;
        folders += len + (folders[len] == ':' ? 1 : 0);
    }
    return false;
}

/* scripts/ put it into build/tools; programs built here are somewhere below build/. */
static bool nats_in_tools(char *ret, size_t cap)
{
    char self[PATH_BYTES];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0)
        return false;
    self[len] = '\0';
    for (unsigned up = 0; up < 5; up++) {
        char *slash = strrchr(self, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        int const n = snprintf(ret, cap, "%s/tools/nats/usr/sbin/nats-server", self);
        if (n > 0 && (size_t)n < cap && nats_is_new_enough(ret))
            return true;
    }
    return false;
}

thole_status server_find_nats(char *ret_path, size_t cap, thole_error *reterr)
{
    const char *wish = getenv("NATS_SERVER");
    if (wish != NULL && wish[0] != '\0') {
        int const n = snprintf(ret_path, cap, "%s", wish);
        if (n > 0 && (size_t)n < cap && nats_is_new_enough(ret_path))
            return THOLE_OK;
        return thole_fail(reterr, THOLE_NOT_FOUND, "NATS_SERVER=%s is not a nats-server of 2.10.23 or newer",
                          wish);
    }
    if (nats_in_tools(ret_path, cap) || nats_in(getenv("PATH"), ret_path, cap) ||
        nats_in("/usr/sbin:/usr/local/bin:/usr/local/sbin", ret_path, cap))
        return THOLE_OK;
    return thole_fail(
        reterr, THOLE_NOT_FOUND,
        "no nats-server of 2.10.23 or newer on PATH; install one or set NATS_SERVER to its path");
}

static bool has_postgres(const char *folder)
{
    char path[PATH_BYTES];
    (void)snprintf(path, sizeof path, "%s/initdb", folder);
    if (access(path, X_OK) != 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/postgres", folder);
    return access(path, X_OK) == 0;
}

/* Debian: /usr/lib/postgresql/VERSION/bin; the newest. */
static bool postgres_of_debian(char *ret, size_t cap)
{
    static const char start[] = "/usr/lib/postgresql/";
    glob_t all = {.gl_pathc = 0};
    unsigned long best = 0;
    if (glob("/usr/lib/postgresql/[0-9]*/bin", 0, NULL, &all) == 0)
        for (size_t i = 0; i < all.gl_pathc; i++) {
            unsigned long const version = strtoul(all.gl_pathv[i] + sizeof start - 1, NULL, 10);
            if (version > best && has_postgres(all.gl_pathv[i]) && strlen(all.gl_pathv[i]) < cap) {
                best = version;
                (void)snprintf(ret, cap, "%s", all.gl_pathv[i]);
            }
        }
    globfree(&all);
    return best > 0;
}

thole_status server_find_postgres(char *ret_path, size_t cap, thole_error *reterr)
{
    const char *wish = getenv("POSTGRES_BIN");
    const char *folders = getenv("PATH");
    if (wish != NULL && wish[0] != '\0') {
        int const n = snprintf(ret_path, cap, "%s", wish);
        if (n > 0 && (size_t)n < cap && has_postgres(wish))
            return THOLE_OK;
        return thole_fail(reterr, THOLE_NOT_FOUND, "POSTGRES_BIN=%s does not hold initdb and postgres", wish);
    }
    if (postgres_of_debian(ret_path, cap))
        return THOLE_OK;
    while (folders != NULL && *folders != '\0') {
        size_t const len = strcspn(folders, ":");
        int const n = snprintf(ret_path, cap, "%.*s", (int)len, folders);
        if (n > 0 && (size_t)n < cap && has_postgres(ret_path))
            return THOLE_OK;
        folders += len + (folders[len] == ':' ? 1 : 0);
    }
    return thole_fail(
        reterr, THOLE_NOT_FOUND,
        "no Postgres server found; install one or set POSTGRES_BIN to the folder of initdb and postgres");
}
