/* What is known of a worker's end: from the kernel, and in words. */
#include "last_word.h"
#include "thole_cunit.h"
#include <signal.h>

#define HANDLER                                                                                              \
    {                                                                                                        \
        .instance_len = 1                                                                                    \
    }

static void test_text(void)
{
    static const struct {
        struct last_word word;
        const char *want;
    } cases[] = {
        {{.kind = LAST_WORD_NONE}, "it ended without a word: SIGKILL, or _exit() was called"},
        {{.kind = LAST_WORD_SIGNAL, .number = SIGABRT, .in = HANDLER}, "SIGABRT in its handler"},
        {{.kind = LAST_WORD_SIGNAL, .number = SIGSEGV, .fault = true, .in = HANDLER},
         "SIGSEGV in its handler, at address 0x0"},
        {{.kind = LAST_WORD_SIGNAL, .number = SIGBUS, .fault = true, .address = UINT64_MAX},
         "SIGBUS on a thread that is no handler's, at address 0xffffffffffffffff"},
        {{.kind = LAST_WORD_EXIT, .number = 3, .in = HANDLER}, "exit(3) in its handler"},
        {{.kind = LAST_WORD_EXIT, .number = 0}, "exit(0) on a thread that is no handler's"},
        {{.kind = LAST_WORD_KILLED, .number = SIGKILL},
         "killed by SIGKILL, by the system (out of memory) or by somebody"},
        {{.kind = LAST_WORD_KILLED, .number = SIGXCPU}, "killed by SIGXCPU"},
        {{.kind = LAST_WORD_KILLED, .number = 63}, "killed by signal 63"},
        {{.kind = LAST_WORD_CODE, .number = 4}, "it ended with code 4 without being asked to stop"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[LAST_WORD_TEXT_BYTES];
        CHECK_STR("text", last_word_text(&cases[i].word, text), cases[i].want);
    }
}

#define UNTIL_EXIT_CODE                                                                                      \
    " Z 1 1 1 0 -1 4228364 90 0 0 0 0 0 0 0 20 0 1 0 5 0 0 18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17"  \
    " 0 0 0 0 0 0 0 0 0 0 0 0 0 "

static void test_stat(void)
{
    static const struct {
        const char *stat;
        enum last_word_kind kind;
        int number;
    } cases[] = {
        {"7 (poison)" UNTIL_EXIT_CODE "9\n", LAST_WORD_KILLED, SIGKILL},
        {"7 (poison)" UNTIL_EXIT_CODE "139\n", LAST_WORD_KILLED, SIGSEGV}, /* with a core dump */
        {"7 (poison)" UNTIL_EXIT_CODE "1024\n", LAST_WORD_CODE, 4},
        {"7 (9) (9 ) 9)" UNTIL_EXIT_CODE "9\n", LAST_WORD_KILLED, SIGKILL},
        {"7 (poison)" UNTIL_EXIT_CODE "0\n", LAST_WORD_NONE, 0}, /* it lives, or is not shown to us */
        {"7 (poison)" UNTIL_EXIT_CODE, LAST_WORD_NONE, 0},
        {"7 (poison) Z 1 1\n", LAST_WORD_NONE, 0},
        {"9", LAST_WORD_NONE, 0},
        {"", LAST_WORD_NONE, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct last_word word;
        last_word_from_stat(cases[i].stat, &word);
        CU_ASSERT_EQUAL(word.kind, cases[i].kind);
        CU_ASSERT_EQUAL(word.number, cases[i].number);
    }
}

int main(void)
{
    static const struct thole_test tests[] = {{"in words", test_text}, {"from the kernel", test_stat}};
    return thole_run_suite("last_word_text", tests, ARRAY_LEN(tests));
}
