#include "example_kit.h"
#include <stdlib.h>

enum { HISTORY_BYTES_MAX = 64 * 1024, CRASHES_MAX = 5000 };

void example_slice(const char *what, thole_slice got, const char *want)
{
    char text[1024];
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(got));
    CHECK_STR(what, text, want);
}

static FILE *open_file(const char *name, const char *mode)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/tests/examples/%s.history", THOLE_SOURCE_DIR, name);
    FILE *const file = fopen(path, mode);
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    return file;
}

void example_history(thole_test_env *env, thole_slice instance, const char *name)
{
    static char want[HISTORY_BYTES_MAX];
    const char *const got = thole_test_history(env, instance);
    const char *const how = getenv("THOLE_GOLDEN");
    bool const write = how != NULL && strcmp(how, "write") == 0;
    FILE *const file = open_file(name, write ? "w" : "r");
    if (write) {
        (void)fputs(got, file);
    } else {
        want[fread(want, 1, sizeof want - 1, file)] = '\0';
        CHECK_STR(name, got, want);
    }
    (void)fclose(file);
}

void example_crashes(const thole_program *program, example_play_fn *play, thole_slice instance)
{
    static char want[HISTORY_BYTES_MAX];
    thole_test_env *env = thole_test_create(program);
    play(env);
    (void)snprintf(want, sizeof want, "%s", thole_test_history(env, instance));
    size_t crashes = 1, n = 0;
    for (; crashes > 0 && n < CRASHES_MAX; n++) {
        thole_test_destroy(env);
        env = thole_test_create(program);
        thole_test_crash_after(env, n);
        play(env);
        CHECK_STR("with a crash", thole_test_history(env, instance), want);
        crashes = thole_test_crashes(env);
    }
    CU_ASSERT(n > 10 && n < CRASHES_MAX);
    thole_test_destroy(env);
}
