/* The known facts of a worker's end: from the kernel, and in words. */
#include "guarded.h"
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
        {"7 (poison)" UNTIL_EXIT_CODE "0\n", WORKER_CRASH_NONE, 0}, /* lives, or is hidden from us */
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

/* ---- a page that a dying or hostile worker has written into ---- */

static struct worker_crash_page page_of(const char *worker)
{
    struct worker_crash_page page = {
        .crash = {
            .kind = WORKER_CRASH_SIGNAL,
            .number = SIGSEGV,
            .fault = true,
            .in = {.execution = 1, .activity_id = 2, .attempt = 3, .try_number = 4, .instance_len = 2}}};
    memcpy(page.crash.in.instance, "id", 2);
    (void)snprintf(page.worker, sizeof page.worker, "%s", worker);
    return page;
}

/* The report as it is read: "worker kind instance". */
static const char *taken(const struct worker_crash_page *page)
{
    static char text[512];
    struct worker_crash crash;
    char worker[WORKER_CRASH_WORKER_BYTES];
    const void *const guarded = guarded_copy((const uint8_t *)page, sizeof *page);
    bool const named = worker_crash_take(guarded, &crash, worker);
    (void)snprintf(text, sizeof text, "%s %d %.*s", named ? worker : "-", (int)crash.kind,
                   (int)crash.in.instance_len, (const char *)crash.in.instance);
    return text;
}

static void test_pages(void)
{
    struct worker_crash_page page = page_of("w-1");
    CHECK_STR("as written", taken(&page), "w-1 1 id");
    for (uint8_t written = 0; written < 4; written++) { /* bytes that are no bool must not be read as one */
        struct worker_crash crash;
        char worker[WORKER_CRASH_WORKER_BYTES];
        uint8_t got;
        memcpy(&page.crash.fault, &written, sizeof written);
        CU_ASSERT_TRUE(worker_crash_take(&page, &crash, worker));
        memcpy(&got, &crash.fault, sizeof got);
        CU_ASSERT_EQUAL(got, written != 0);
    }
    page.crash.in.instance_len = UINT32_MAX;
    CHECK_STR("a length", taken(&page), "w-1 1 ");
    page = page_of("w-1");
    page.crash.in.attempt = UINT64_MAX;
    CHECK_STR("a number", taken(&page), "w-1 1 ");
    page = page_of("w-1");
    memcpy(page.crash.in.instance, "\xff\xfe", 2);
    CHECK_STR("no UTF-8", taken(&page), "w-1 1 ");
    page = page_of("w-1");
    page.crash.kind = (enum worker_crash_kind)77;
    CHECK_STR("a kind", taken(&page), "w-1 0 ");
    page.crash.kind = WORKER_CRASH_KILLED;
    CHECK_STR("a kind that only the kernel knows", taken(&page), "w-1 0 ");
    page = page_of("w'; DROP");
    CHECK_STR("no name", taken(&page), "- 1 id");
    memset(page.worker, 'w', sizeof page.worker);
    CHECK_STR("a name without an end", taken(&page), "- 1 id");
    page = page_of("");
    CHECK_STR("none", taken(&page), "- 1 id");
}

/* Whatever the bytes are, nothing beyond the page is read, and what is taken has words. */
static void test_random_pages(void)
{
    enum { PAGES = 200000 };
    uint64_t state = 88172645463325252u;
    struct worker_crash_page page;
    for (int i = 0; i < PAGES; i++) {
        page = page_of("w-1");
        size_t const from = (size_t)(state % sizeof page), len = i % 3 == 0 ? sizeof page : 8;
        for (size_t k = from; k < sizeof page && k < from + len; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            ((uint8_t *)&page)[k] = i % 5 == 0 ? 0xff : (uint8_t)(state >> 33);
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct worker_crash crash;
        char worker[WORKER_CRASH_WORKER_BYTES], text[WORKER_CRASH_TEXT_BYTES] = "";
        const void *const guarded = guarded_copy((const uint8_t *)&page, sizeof page);
        bool const named = worker_crash_take(guarded, &crash, worker);
        CU_ASSERT_TRUE(crash.in.instance_len <= THOLE_ID_BYTES_MAX);
        CU_ASSERT_TRUE(!named || strnlen(worker, sizeof worker) < sizeof worker);
        CU_ASSERT_TRUE(worker_crash_text(&crash, text)[0] != '\0');
    }
}

int main(void)
{
    static const struct thole_test tests[] = {{"in words", test_text},
                                              {"from the kernel", test_stat},
                                              {"pages", test_pages},
                                              {"random pages", test_random_pages}};
    return thole_run_suite("worker_crash_text", tests, ARRAY_LEN(tests));
}
