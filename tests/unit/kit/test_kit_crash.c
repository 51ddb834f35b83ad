/* The output of a test program that dies in an orchestration's code. */
#include "sanitized.h"
#include "thole/testing.h"
#include "thole_cunit.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int zero;
static int *volatile nowhere;

static thole_status large(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    volatile char local[200 * 1024];
    (void)ctx, (void)input, (void)ret_output;
    memset((char *)local, 1, sizeof local);
    return local[zero] == 1 ? THOLE_OK : THOLE_APP;
}

static thole_status recursion(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    if (zero > 1)
        return THOLE_OK;
    return recursion(ctx, input, ret_output) == THOLE_OK && zero == 0 ? THOLE_OK : THOLE_APP;
}

static thole_status null(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    *nowhere = 1;
    return THOLE_OK;
}

static thole_status leaves(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx, (void)input, (void)ret_output;
    exit(3);
}

static thole_status well(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)ctx;
    *ret_output = input;
    return THOLE_OK;
}

static void release_wrongly(void *arg)
{
    (void)arg;
    *nowhere = 1;
}

static thole_status drops(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    (void)input, (void)ret_output;
    THOLE_TRY(thole_on_drop(ctx, release_wrongly, NULL));
    return thole_sleep(ctx, 1000);
}

static const thole_orchestration_entry all[] = {{"drops", drops},
                                                {"drops_later", drops},
                                                {"large", large},
                                                {"large_of_more", large, .stack_bytes = 256 * 1024},
                                                {"recursion_of_more", recursion, .stack_bytes = 200 * 1024},
                                                {"recursion", recursion},
                                                {"null", null},
                                                {"leaves", leaves},
                                                {"well", well}};
static const thole_program program = {
    .size = sizeof program, .name = "crashes", .orchestrations = all, .orchestrations_len = ARRAY_LEN(all)};

_Noreturn static void run_it(const char *name, int to)
{
    struct rlimit const none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)dup2(to, STDERR_FILENO);
    thole_test_env *const env = thole_test_create(&program);
    if (strcmp(name, "drops_later") == 0)
        thole_test_keep_parked(env); /* until the kit goes */
    if (thole_test_start(env, THOLE_STR("order-1"), thole_slice_from(name), THOLE_STR("x")) == THOLE_OK)
        (void)thole_test_run(env, THOLE_STR("order-1"));
    if (strcmp(name, "drops_later") == 0)
        thole_test_destroy(env);
    if (strcmp(name, "well") == 0)
        *nowhere = 1; /* not in an orchestration's code */
    _exit(0);
}

static const char *dies_of(const char *name, int *ret_status)
{
    static char said[4096];
    int ends[2];
    size_t len = 0;
    ssize_t n;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t const pid = fork();
    if (pid == 0)
        run_it(name, ends[1]);
    (void)close(ends[1]);
    while ((n = read(ends[0], said + len, sizeof said - 1 - len)) > 0)
        len += (size_t)n;
    said[len] = '\0';
    (void)close(ends[0]);
    (void)waitpid(pid, ret_status, 0);
    return said;
}

static bool says(const char *name, int number, const char *first, const char *second)
{
    int status = 0;
    const char *const said = dies_of(name, &status);
    bool const died = number == 0 ? WIFEXITED(status) && WEXITSTATUS(status) == 3
                                  : WIFSIGNALED(status) && WTERMSIG(status) == number;
    bool const good = died && strstr(said, first) != NULL && strstr(said, second) != NULL;
    if (!good)
        fprintf(stderr, "  %s: status %x, says: %s\n", name, (unsigned)status, said);
    return good;
}

static void names_the_orchestration(void)
{
    CU_ASSERT_TRUE(says("large", SIGSEGV,
                        "thole test kit: stack overflow in orchestration large: 64 KiB; instance order-1\n",
                        "stack overflow: 64 KiB, SIGSEGV in large"));
    CU_ASSERT_TRUE(says("recursion", SIGSEGV, "stack overflow in orchestration recursion: 64 KiB",
                        ", in a turn of orchestration recursion, at event 1"));
    CU_ASSERT_TRUE(says("null", SIGSEGV, "SIGSEGV in orchestration null; instance order-1\n",
                        "SIGSEGV at address 0x0 in null"));
    CU_ASSERT_TRUE(
        says("drops", SIGSEGV, "SIGSEGV in orchestration drops; instance order-1\n", "release_wrongly"));
    CU_ASSERT_TRUE(says("drops_later", SIGSEGV, "SIGSEGV in orchestration drops_later; instance order-1\n",
                        ", in a drop of orchestration drops_later, at event 4"));
    CU_ASSERT_TRUE(says("leaves", 0, "exit(3) was called in orchestration leaves", "in leaves"));
}

/* The size is the entry's, rounded up. */
static void stacks_of_other_sizes(void)
{
    thole_test_env *const env = thole_test_create(&program);
    CU_ASSERT_EQUAL(thole_test_start(env, THOLE_STR("i"), THOLE_STR("large_of_more"), THOLE_STR("x")),
                    THOLE_OK);
    CU_ASSERT_EQUAL(thole_test_run(env, THOLE_STR("i")), THOLE_INSTANCE_COMPLETED);
    thole_test_destroy(env);
    CU_ASSERT_TRUE(says("recursion_of_more", SIGSEGV,
                        "stack overflow in orchestration recursion_of_more: 256 KiB",
                        "stack overflow: 256 KiB, SIGSEGV in recursion"));
}

static void says_nothing_of_others(void)
{
    int status = 0;
    CU_ASSERT_STRING_EQUAL(dies_of("well", &status), "");
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static const struct thole_test tests[] = {
    {"a test that dies names the orchestration", names_the_orchestration},
    {"stacks of other sizes", stacks_of_other_sizes},
    {"a test that dies elsewhere dies as ever", says_nothing_of_others},
};

int main(void)
{
    return SANITIZED ? 77 : thole_run_suite("kit crash", tests, ARRAY_LEN(tests)); /* the sanitizer says it */
}
