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

/* A search for nats-server: where the one to use is, and the first that is too old. */
struct nats_search {
    char *ret;
    size_t cap;
    char old[PATH_BYTES], old_version[64];
};

/* Runs `PROGRAM --version`, which says "nats-server: v2.10.27", and writes "2.10.27". */
static bool nats_version(const char *program, char *ret, size_t cap)
{
    struct process version = {.len = 0};
    char line[256], dir[SERVER_PATH_BYTES];
    if (access(program, X_OK) != 0 || strlen(program) >= PROCESS_TEXT_BYTES ||
        server_dir_create("thole-v", dir, NULL) != THOLE_OK)
        return false;
    process_arg(&version, "%s", program);
    process_arg(&version, "--version");
    (void)snprintf(version.log, sizeof version.log, "%s/out", dir);
    bool const ran = process_run(&version, NULL) == THOLE_OK;
    process_last_line(version.log, line, sizeof line);
    server_dir_remove(dir);
    const char *number = strstr(line, " v"); /* the first: there are v2.12.0-preview.1 */
    if (!ran || number == NULL)
        return false;
    (void)snprintf(ret, cap, "%s", number + 2);
    return true;
}

static bool nats_is_new_enough(const char *version)
{
    unsigned major = 0, minor = 0, patch = 0;
    if (sscanf(version, "%u.%u.%u", &major, &minor, &patch) != 3)
        return false;
    if (major != NATS_MAJOR)
        return major > NATS_MAJOR;
    return minor != NATS_MINOR ? minor > NATS_MINOR : patch >= NATS_PATCH;
}

/* True when the program is the one to use; its path is then in ret. */
static bool nats_is(struct nats_search *search, const char *program)
{
    char version[64];
    if (strlen(program) >= search->cap || !nats_version(program, version, sizeof version))
        return false;
    if (nats_is_new_enough(version)) {
        (void)snprintf(search->ret, search->cap, "%s", program);
        return true;
    }
    if (search->old[0] == '\0') {
        (void)snprintf(search->old, sizeof search->old, "%s", program);
        (void)snprintf(search->old_version, sizeof search->old_version, "%s", version);
    }
    return false;
}

/* Looks in the folders of a list separated by colons. */
static bool nats_in(struct nats_search *search, const char *folders)
{
    char path[PATH_BYTES];
    while (folders != NULL && *folders != '\0') {
        size_t const len = strcspn(folders, ":");
        int const n = snprintf(path, sizeof path, "%.*s/nats-server", (int)len, folders);
        if (len > 0 && n > 0 && (size_t)n < sizeof path && nats_is(search, path))
            return true;
        folders += len + (folders[len] == ':' ? 1 : 0);
    }
    return false;
}

/*
 * The programs that scripts/ have fetched: into build/tools, where a program built here is somewhere below
 * build/; or, when thole was installed, from there into PREFIX/libexec/thole, where the program is in
 * PREFIX/bin.
 */
static bool nats_fetched(struct nats_search *search)
{
    static const char *const places[] = {"tools/nats/usr/sbin", "libexec/thole"};
    char self[PATH_BYTES], path[PATH_BYTES];
    ssize_t const len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0)
        return false;
    self[len] = '\0';
    for (unsigned up = 0; up < 5; up++) {
        char *slash = strrchr(self, '/');
        if (slash == NULL)
            return false;
        *slash = '\0';
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            int const n = snprintf(path, sizeof path, "%s/%s/nats-server", self, places[i]);
            if (n > 0 && (size_t)n < sizeof path && nats_is(search, path))
                return true;
        }
    }
    return false;
}

static thole_status no_nats(const struct nats_search *search, const char *wish, thole_error *reterr)
{
    static const char source[] = "https://github.com/nats-io/nats-server/releases";
    if (wish != NULL)
        return thole_fail(reterr, THOLE_NOT_FOUND,
                          "NATS_SERVER=%s is not a nats-server of 2.10.23 or newer%s%s", wish,
                          search->old[0] == '\0' ? "" : ", but ", search->old_version);
    if (search->old[0] != '\0')
        return thole_fail(
            reterr, THOLE_NOT_FOUND,
            "%s is version %s, and 2.10.23 or newer is needed: put one from %s before it on PATH, "
            "or set NATS_SERVER to its path",
            search->old, search->old_version, source);
    return thole_fail(reterr, THOLE_NOT_FOUND,
                      "no nats-server found, and 2.10.23 or newer is needed: put one from %s on PATH, or set "
                      "NATS_SERVER to its path; scripts/fetch-nats in thole's source fetches one",
                      source);
}

thole_status server_find_nats(char *ret_path, size_t cap, thole_error *reterr)
{
    const char *wish = getenv("NATS_SERVER");
    struct nats_search search = {.ret = ret_path, .cap = cap};
    if (wish != NULL && wish[0] != '\0')
        return nats_is(&search, wish) ? THOLE_OK : no_nats(&search, wish, reterr);
    if (nats_fetched(&search) || nats_in(&search, getenv("PATH")) ||
        nats_in(&search, "/usr/sbin:/usr/local/bin:/usr/local/sbin"))
        return THOLE_OK;
    return no_nats(&search, NULL, reterr);
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
    return thole_fail(reterr, THOLE_NOT_FOUND,
                      "no Postgres server found, and 14 or newer is needed: install one (Debian: apt-get "
                      "install postgresql), or "
                      "set POSTGRES_BIN to the folder of initdb and postgres");
}
