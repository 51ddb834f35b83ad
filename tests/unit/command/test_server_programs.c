/* Where nats-server and Postgres are looked for, and which of several is taken. The file system is played. */
#include "server_process.h"
#include "servers.h"
#include "thole_cunit.h"
#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

struct program {
    const char *path, *version; /* NULL: it has none to tell, or cannot be run */
};

static struct {
    const struct program *programs; /* up to one without a path */
    const char *self;
    const char *const *folders; /* of Debian's Postgres, up to NULL */
    const char *asked;          /* whose version was asked for last */
    int globs;                  /* not freed */
} play;

static const struct program *find(const char *path)
{
    for (const struct program *p = play.programs; p->path != NULL; p++)
        if (strcmp(p->path, path) == 0)
            return p;
    return NULL;
}

int __wrap_access(const char *path, int mode)
{
    CU_ASSERT_EQUAL(mode, X_OK);
    return find(path) != NULL ? 0 : -1;
}

ssize_t __wrap_readlink(const char *path, char *ret, size_t cap)
{
    CHECK_STR("link", path, "/proc/self/exe");
    if (play.self == NULL)
        return -1;
    size_t const len = strlen(play.self);
    CU_ASSERT_TRUE_FATAL(len < cap);
    memcpy(ret, play.self, len);
    return (ssize_t)len;
}

int __wrap_glob(const char *pattern, int flags, int (*error)(const char *, int), glob_t *ret)
{
    (void)flags, (void)error;
    CHECK_STR("pattern", pattern, "/usr/lib/postgresql/[0-9]*/bin");
    if (play.folders == NULL)
        return GLOB_NOMATCH;
    play.globs++;
    ret->gl_pathv = (char **)(uintptr_t)play.folders;
    for (ret->gl_pathc = 0; play.folders[ret->gl_pathc] != NULL; ret->gl_pathc++)
        ;
    return 0;
}

void __wrap_globfree(glob_t *all)
{
    play.globs -= all->gl_pathc > 0;
}

thole_status __wrap_server_dir_create(const char *prefix, char ret[SERVER_PATH_BYTES], thole_error *reterr)
{
    (void)prefix, (void)reterr;
    (void)snprintf(ret, SERVER_PATH_BYTES, "/tmp/x");
    return THOLE_OK;
}

void __wrap_server_dir_remove(const char *path)
{
    CHECK_STR("folder", path, "/tmp/x");
}

thole_status __wrap_process_run(const struct process *process, thole_error *reterr)
{
    const struct program *const program = find(process->text[0]);
    play.asked = program == NULL ? NULL : program->version;
    return play.asked != NULL ? THOLE_OK : thole_fail(reterr, THOLE_UNAVAILABLE, "cannot be run");
}

void __wrap_process_last_line(const char *path, char *ret, size_t cap)
{
    CHECK_STR("log", path, "/tmp/x/out");
    (void)snprintf(ret, cap, "%s", play.asked == NULL ? "" : play.asked);
}

/* ---- tests ---- */

static void begin(const struct program *programs, const char *wish, const char *path)
{
    memset(&play, 0, sizeof play);
    play.programs = programs;
    CU_ASSERT_EQUAL(setenv("NATS_SERVER", wish, 1), 0);
    CU_ASSERT_EQUAL(setenv("POSTGRES_BIN", wish, 1), 0);
    CU_ASSERT_EQUAL(setenv("PATH", path, 1), 0);
}

#define NEW "nats-server: v2.10.27"
#define OLD "nats-server: v2.10.22"

static const struct {
    const char *name, *wish, *self, *path, *want, *text; /* want NULL: none is found, as the text says */
    struct program programs[4];
} searches[] = {
    {"the wish", "/w", "/b/cli/thole", "/p", "/w", "", {{"/w", NEW}, {"/p/nats-server", NEW}}},
    {"a wish that is not there",
     "/w",
     NULL,
     "/p",
     NULL,
     "NATS_SERVER=/w is not a nats-server of 2.10.23 or newer",
     {{"/p/nats-server", NEW}}},
    {"a wish that is old", "/w", NULL, "/p", NULL, "or newer, but 2.10.22", {{"/w", OLD}}},
    {"built here",
     "",
     "/b/cli/thole",
     "/p",
     "/b/tools/nats/usr/sbin/nats-server",
     "",
     {{"/p/nats-server", NEW}, {"/b/tools/nats/usr/sbin/nats-server", NEW}}},
    {"installed",
     "",
     "/u/bin/thole",
     "/p",
     "/u/libexec/thole/nats-server",
     "",
     {{"/p/nats-server", NEW}, {"/u/libexec/thole/nats-server", NEW}}},
    {"too far above",
     "",
     "/a/b/c/d/e/f/thole",
     "/p",
     "/p/nats-server",
     "",
     {{"/a/libexec/thole/nats-server", NEW}, {"/p/nats-server", NEW}}},
    {"five folders above",
     "",
     "/a/b/c/d/e/thole",
     "/p",
     "/a/libexec/thole/nats-server",
     "",
     {{"/a/libexec/thole/nats-server", NEW}, {"/p/nats-server", NEW}}},
    {"no link", "", NULL, "/o::/p", "/p/nats-server", "", {{"/o/nats-server", OLD}, {"/p/nats-server", NEW}}},
    {"behind the path", "", "/x", "/p", "/usr/sbin/nats-server", "", {{"/usr/sbin/nats-server", NEW}}},
    {"all are old: the first is told",
     "",
     "/x",
     "/p:/q",
     NULL,
     "/p/nats-server is version 2.10.22, and 2.10.23 or newer is needed",
     {{"/p/nats-server", OLD}, {"/q/nats-server", "nats-server: v1.0.0"}}},
    {"none", "", "/x", "/p", NULL, "no nats-server found", {{NULL, NULL}}},
    {"it cannot be run", "", "/x", "/p", NULL, "no nats-server found", {{"/p/nats-server", NULL}}},
};

static void test_nats(void)
{
    for (size_t i = 0; i < ARRAY_LEN(searches); i++) {
        char path[256] = "";
        thole_error err = {0};
        begin(searches[i].programs, searches[i].wish, searches[i].path);
        play.self = searches[i].self;
        thole_status const status = server_find_nats(path, sizeof path, &err);
        CU_ASSERT_EQUAL(status, searches[i].want != NULL ? THOLE_OK : THOLE_NOT_FOUND);
        CHECK_STR(searches[i].name, path, searches[i].want != NULL ? searches[i].want : "");
        CHECK_STR(searches[i].name, strstr(err.text, searches[i].text) != NULL ? "told" : err.text, "told");
    }
}

static void test_versions(void)
{
    static const struct {
        const char *version;
        bool taken;
    } rows[] = {{"nats-server: v2.10.23", true},         {"nats-server: v2.10.22", false},
                {"nats-server: v2.9.99", false},         {"nats-server: v2.11.0", true},
                {"nats-server: v3.0.0", true},           {"nats-server: v1.99.99", false},
                {"nats-server: v2.10", false},           {"hello", false},
                {"nats-server: v2.11.0-preview.2", true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct program const programs[] = {{"/w", rows[i].version}, {NULL, NULL}};
        char path[256] = "";
        begin(programs, "/w", "");
        CU_ASSERT_EQUAL(server_find_nats(path, sizeof path, NULL),
                        rows[i].taken ? THOLE_OK : THOLE_NOT_FOUND);
    }
    struct program const programs[] = {{"/long", NEW}, {NULL, NULL}};
    char small[5] = "";
    begin(programs, "/long", "");
    CU_ASSERT_EQUAL(server_find_nats(small, sizeof small, NULL), THOLE_NOT_FOUND);
}

#define POSTGRES(folder)                                                                                     \
    {folder "/initdb", ""},                                                                                  \
    {                                                                                                        \
        folder "/postgres", ""                                                                               \
    }

static void test_postgres(void)
{
    static const char *const debian[] = {"/usr/lib/postgresql/9/bin", "/usr/lib/postgresql/14/bin",
                                         "/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin", NULL};
    static const struct {
        const char *name, *wish, *path, *want, *text;
        struct program programs[8];
    } rows[] = {
        {"the wish", "/w", "/p", "/w", "", {POSTGRES("/w"), POSTGRES("/p")}},
        {"a wish without initdb",
         "/w",
         "/p",
         NULL,
         "POSTGRES_BIN=/w does not hold initdb and postgres",
         {{"/w/postgres", ""}, POSTGRES("/p")}},
        {"a wish without postgres", "/w", "/p", NULL, "POSTGRES_BIN=/w", {{"/w/initdb", ""}}},
        {"the newest that is whole",
         "",
         "/p",
         "/usr/lib/postgresql/15/bin",
         "",
         {POSTGRES("/usr/lib/postgresql/9/bin"),
          POSTGRES("/usr/lib/postgresql/15/bin"),
          {"/usr/lib/postgresql/16/bin/initdb", ""},
          POSTGRES("/p")}},
        {"by number",
         "",
         "/p",
         "/usr/lib/postgresql/14/bin",
         "",
         {POSTGRES("/usr/lib/postgresql/14/bin"), POSTGRES("/usr/lib/postgresql/9/bin")}},
        {"of the path", "", "/o:/p:/q", "/p", "", {{"/o/postgres", ""}, POSTGRES("/p"), POSTGRES("/q")}},
        {"none", "", "/p", NULL, "no Postgres server found", {{NULL, NULL}}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char path[256] = "";
        thole_error err = {0};
        begin(rows[i].programs, rows[i].wish, rows[i].path);
        play.folders = i == ARRAY_LEN(rows) - 1 ? NULL : debian;
        thole_status const status = server_find_postgres(path, sizeof path, &err);
        CU_ASSERT_EQUAL(status, rows[i].want != NULL ? THOLE_OK : THOLE_NOT_FOUND);
        if (rows[i].want != NULL)
            CHECK_STR(rows[i].name, path, rows[i].want);
        CHECK_STR(rows[i].name, strstr(err.text, rows[i].text) != NULL ? "told" : err.text, "told");
        CU_ASSERT_EQUAL(play.globs, 0);
    }
}

static const struct thole_test tests[] = {
    {"nats-server", test_nats}, {"its versions", test_versions}, {"Postgres", test_postgres}};
THOLE_TEST_MAIN("server_programs", tests)
