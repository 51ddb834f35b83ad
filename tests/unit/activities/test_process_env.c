/* The variables that reach activities in processes of their own, and that these gain no privileges. */
#include "environment.h"
#include "process_stage.h"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { BLOCK_BYTES = 1 << 20 };

/* The text of variables that a program was given when it began, as its user can read it. */
static bool block_has(const char *path, const char *word)
{
    static char block[BLOCK_BYTES];
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t const len = fd < 0 ? -1 : read(fd, block, sizeof block);
    if (fd >= 0)
        (void)close(fd);
    return len < 0 || memmem(block, (size_t)len, word, strlen(word)) != NULL;
}

/* The process's own variables among those that main() has set, those of a program that it starts, and the
 * traces of a secret. */
static thole_status tells(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char names[1024] = "", path[64], line[256];
    int privileges = 0, others = 0;
    (void)input;
    for (char **at = environ; *at != NULL; at++) {
        bool const ours = strncmp(*at, "X_", 2) == 0 || strstr(*at, "geheim") != NULL;
        others += !ours;
        if (ours)
            (void)snprintf(names + strlen(names), sizeof names - strlen(names), "%.*s ",
                           (int)strcspn(*at, "="), *at);
    }
    FILE *const status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        privileges += strcmp(line, "NoNewPrivs:\t1\n") == 0;
    if (status != NULL)
        (void)fclose(status);
    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)getppid());
    FILE *const started = popen("env | grep -c geheim", "re");
    char count[16] = "";
    (void)!fgets(count, sizeof count, started);
    (void)pclose(started);
    count[strcspn(count, "\n")] = '\0';
    *ret_output = thole_activity_format(act, "%s| %d %s %d %d %d", names, privileges, count,
                                        block_has("/proc/self/environ", "geheim"), block_has(path, "geheim"),
                                        others > 0 && getenv("PATH") != NULL);
    return THOLE_OK;
}

static const thole_activity_options plain = {.size = sizeof plain, .isolation = THOLE_ISOLATION_PROCESS};
static const thole_activity_options trusted = {
    .size = sizeof trusted, .isolation = THOLE_ISOLATION_PROCESS, .keep_env = true};
static const thole_activity_entry activities[] = {{"tells", tells, &plain}};
static const thole_activity_entry mixed[] = {{"tells", tells, &plain}, {"trusted", tells, &trusted}};
static const thole_program program = {
    .size = sizeof program, .name = "stage", .activities = activities, .activities_len = 1};
static const thole_program with_trusted = {
    .size = sizeof with_trusted, .name = "stage", .activities = mixed, .activities_len = 2};

static void test_named_ones(void)
{
    process_stage_check("plain", process_stage_once("tells", ""), "ok: X_APP_MODE X_ONE | 1 0 0 0 1");
    process_stage_check("again", process_stage_once("tells", ""), "ok: X_APP_MODE X_ONE | 1 0 0 0 1");
}

/* Beside one that keeps them, in a forkserver that has them all. */
static void test_beside_a_trusted_one(void)
{
    process_stage_close();
    process_stage_open(&with_trusted, 2);
    process_stage_check("plain", process_stage_once("tells", ""), "ok: X_APP_MODE X_ONE | 1 0 0 1 1");
    CU_ASSERT_PTR_NOT_NULL(strstr(process_stage_once("trusted", ""), "PGPASSWORD "));
    CU_ASSERT_PTR_NOT_NULL(strstr(process_stage_once("trusted", ""), "| 1 "));
}

static void test_this_one_has_its_own(void)
{
    CU_ASSERT_PTR_NOT_NULL_FATAL(getenv("PGPASSWORD"));
    CHECK_STR("PGPASSWORD", getenv("PGPASSWORD"), "geheim");
}

static void test_lists(void)
{
    static const struct {
        const char *names;
        bool good;
    } rows[] = {{NULL, true},   {"", true},     {"A", true},   {"APP_*,b_1", true},
                {"*", true},    {"A,", false},  {",A", false}, {"A B", false},
                {"A**", false}, {"A*B", false}, {"A=1", false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        CU_ASSERT_EQUAL(environment_check(rows[i].names, NULL) == THOLE_OK, rows[i].good);
    CU_ASSERT_TRUE(environment_allows("APP_X=1", "MODE,APP_*"));
    CU_ASSERT_TRUE(environment_allows("MODE", "MODE,APP_*"));
    CU_ASSERT_FALSE(environment_allows("MODES=1", "MODE,APP_*"));
    CU_ASSERT_FALSE(environment_allows("MOD=1", "MODE,APP_*"));
    CU_ASSERT_FALSE(environment_allows("AP=1", "APP_*"));
    CU_ASSERT_TRUE(environment_allows("LC_TIME=C", NULL));
    CU_ASSERT_TRUE(environment_allows("PGPASSWORD=x", "*"));
}

int main(int argc, char **argv)
{
    static const struct thole_test tests[] = {
        {"the variables that the option names", test_named_ones},
        {"beside one that keeps them", test_beside_a_trusted_one},
        {"the worker keeps its own", test_this_one_has_its_own},
        {"lists of names", test_lists},
    };
    if (argc == 1) { /* so that they are in the block that the system makes */
        static const char *const set[] = {"PGPASSWORD",     "PGPASSFILE",     "THOLE_POSTGRES",
                                          "THOLE_NATS_URL", "AWS_SECRET_KEY", "X_OTHER_MODE",
                                          "http_proxy",     "XX_ONE"};
        for (size_t i = 0; i < ARRAY_LEN(set); i++)
            (void)setenv(set[i], "geheim", 1);
        (void)setenv("THOLE_PROCESS_ENV", "X_APP_*,X_ONE", 1);
        (void)setenv("X_APP_MODE", "fast", 1);
        (void)setenv("X_ONE", "1", 1);
        (void)execl("/proc/self/exe", argv[0], "again", NULL);
        return 1;
    }
    static const char literal[] = "X_LITERAL=geheim"; /* not writable */
    (void)putenv((char *)(uintptr_t)literal);
    process_stage_env = getenv("THOLE_PROCESS_ENV");
    process_stage_open(&program, 2);
    int const failed = thole_run_suite("process_env", tests, ARRAY_LEN(tests));
    process_stage_close();
    return failed;
}
