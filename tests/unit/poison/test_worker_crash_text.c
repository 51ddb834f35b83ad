/* What is known of a worker's end: from the kernel, and in words. */
#include "thole_cunit.h"
#include "worker_crash.h"
#include <signal.h>

#define HANDLER                                                                                              \
    {                                                                                                        \
        .instance_len = 1                                                                                    \
    }

static void test_text(void)
{
    static const struct {
        struct worker_crash crash;
        const char *want;
    } cases[] = {
        {{.kind = WORKER_CRASH_NONE}, "it ended without a report: SIGKILL, or _exit() was called"},
        {{.kind = WORKER_CRASH_SIGNAL, .number = SIGABRT, .in = HANDLER}, "SIGABRT in its handler"},
        {{.kind = WORKER_CRASH_SIGNAL, .number = SIGSEGV, .fault = true, .in = HANDLER},
         "SIGSEGV in its handler, at address 0x0"},
        {{.kind = WORKER_CRASH_SIGNAL, .number = SIGBUS, .fault = true, .address = UINT64_MAX},
         "SIGBUS on a thread that is no handler's, at address 0xffffffffffffffff"},
        {{.kind = WORKER_CRASH_EXIT, .number = 3, .in = HANDLER}, "exit(3) in its handler"},
        {{.kind = WORKER_CRASH_EXIT, .number = 0}, "exit(0) on a thread that is no handler's"},
        {{.kind = WORKER_CRASH_KILLED, .number = SIGKILL},
         "killed by SIGKILL, by the system (out of memory) or by somebody"},
        {{.kind = WORKER_CRASH_KILLED, .number = SIGXCPU}, "killed by SIGXCPU"},
        {{.kind = WORKER_CRASH_KILLED, .number = 63}, "killed by signal 63"},
        {{.kind = WORKER_CRASH_CODE, .number = 4}, "it ended with code 4 without being asked to stop"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[WORKER_CRASH_TEXT_BYTES];
        CHECK_STR("text", worker_crash_text(&cases[i].crash, text), cases[i].want);
    }
}

#define UNTIL_EXIT_CODE                                                                                      \
    " Z 1 1 1 0 -1 4228364 90 0 0 0 0 0 0 0 20 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17"  \
    " 0 0 0 0 0 0 0 0 0 0 0 0 0 "

static void test_stat(void)
{
    static const struct {
        const char *stat;
        enum worker_crash_kind kind;
        int number;
    } cases[] = {
        {"7 (poison)" UNTIL_EXIT_CODE "9\n", WORKER_CRASH_KILLED, SIGKILL},
        {"7 (poison)" UNTIL_EXIT_CODE "139\n", WORKER_CRASH_KILLED, SIGSEGV}, /* with a core dump */
        {"7 (poison)" UNTIL_EXIT_CODE "1024\n", WORKER_CRASH_CODE, 4},
        {"7 (9) (9 ) 9)" UNTIL_EXIT_CODE "9\n", WORKER_CRASH_KILLED, SIGKILL},
        {"7 (poison)" UNTIL_EXIT_CODE "0\n", WORKER_CRASH_NONE, 0}, /* it lives, or is not shown to us */
        {"7 (poison)" UNTIL_EXIT_CODE, WORKER_CRASH_NONE, 0},
        {"7 (poison) Z 1 1\n", WORKER_CRASH_NONE, 0},
        {"9", WORKER_CRASH_NONE, 0},
        {"", WORKER_CRASH_NONE, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct worker_crash crash;
        worker_crash_from_stat(cases[i].stat, &crash);
        CU_ASSERT_EQUAL(crash.kind, cases[i].kind);
        CU_ASSERT_EQUAL(crash.number, cases[i].number);
    }
}

int main(void)
{
    static const struct thole_test tests[] = {{"in words", test_text}, {"from the kernel", test_stat}};
    return thole_run_suite("worker_crash_text", tests, ARRAY_LEN(tests));
}
