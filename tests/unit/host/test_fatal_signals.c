/* The listeners to the process's crash or end, the handlers that remain afterwards, and the stack that a
 * thread gets for it. Child processes crash. */
#include "fatal_signals.h"
#include "thole_cunit.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const int crashes[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};
enum { HEARD = 4, CODE = 9 };

static int said; /* a pipe: what the child's listeners heard */

static void say(char who, const struct fatal *fatal)
{
    char text[64];
    int const len = snprintf(text, sizeof text, "%c%d,%d,%d,%d ", who, fatal->number, fatal->exit_code,
                             fatal->fault, fatal->address == 16);
    CU_ASSERT_EQUAL(write(said, text, (size_t)len), len);
}

static void first(const struct fatal *fatal)
{
    say('a', fatal);
}

static void second(const struct fatal *fatal)
{
    say('b', fatal);
}

static void other(int number)
{
    (void)number;
}

/* How the child ends, as waitpid() has it; what was heard. */
static int play(void (*child)(void), char heard[256])
{
    int ends[2], status = 0;
    size_t len = 0;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    (void)fflush(NULL);
    pid_t const pid = fork();
    if (pid == 0) {
        struct rlimit const none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        for (size_t i = 0; i < ARRAY_LEN(crashes); i++) /* a sanitizer's */
            (void)signal(crashes[i], SIG_DFL);
        said = ends[1];
        child();
        exit(CODE);
    }
    (void)close(ends[1]);
    for (ssize_t n; len < 255 && (n = read(ends[0], heard + len, 255 - len)) > 0;)
        len += (size_t)n;
    heard[len] = '\0';
    (void)close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
    return status;
}

static bool is_taken(int number)
{
    struct sigaction now;
    return sigaction(number, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0;
}

static size_t taken(void)
{
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(crashes); i++)
        n += is_taken(crashes[i]);
    return n;
}

/* ---- calls of listeners ---- */

static void crashes_by_signal(void)
{
    fatal_listen(first);
    fatal_listen(second);
    fatal_listen(first); /* listens already */
    (void)raise(SIGABRT);
}

static void crashes_at_an_address(void)
{
    volatile int *volatile nowhere = (int *)16;
    fatal_listen(first);
    *nowhere = 1;
}

static void ends_by_exit(void)
{
    fatal_listen(first);
    fatal_listen(second);
    fatal_unlisten(second);
    exit(5);
}

static void nobody_listens(void)
{
    fatal_listen(first);
    fatal_unlisten(first);
    exit(5);
}

static void crashes_unheard(void)
{
    fatal_listen(first);
    fatal_unlisten(first);
    (void)raise(SIGSEGV);
}

static void test_what_is_heard(void)
{
    char heard[256];
    int status = play(crashes_by_signal, heard);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    CHECK_STR("both", heard, "a6,0,0,0 b6,0,0,0 ");
    status = play(crashes_at_an_address, heard);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK_STR("an address", heard, "a11,0,1,1 ");
    status = play(ends_by_exit, heard);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    CHECK_STR("an exit", heard, "a0,5,0,0 ");
    status = play(nobody_listens, heard);
    CHECK_STR("nobody listens", heard, "");
    status = play(crashes_unheard, heard);
    CU_ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
    CHECK_STR("nobody listens", heard, "");
}

/* ---- whose handlers ---- */

/* One handler that the program has set, and one signal that it ignores, stay as they are, all the time. */
static void keeps_others(void)
{
    (void)signal(SIGFPE, other);
    (void)signal(SIGBUS, SIG_IGN);
    fatal_listen(first);
    bool good = !is_taken(SIGFPE) && !is_taken(SIGBUS) && is_taken(SIGSEGV) && is_taken(SIGABRT);
    size_t const mine = taken();
    fatal_listen(second);
    fatal_unlisten(first);
    good = good && taken() == mine; /* one listener is left */
    fatal_unlisten(first);
    good = good && taken() == mine;
    fatal_unlisten(second);
    good = good && taken() == 0 && signal(SIGFPE, SIG_DFL) == other && signal(SIGBUS, SIG_DFL) == SIG_IGN &&
           signal(SIGSEGV, SIG_DFL) == SIG_DFL;
    fatal_listen(second); /* once more */
    good = good && taken() == mine + 2;
    fatal_unlisten(second);
    _exit(good ? HEARD : 1);
}

static void test_whose_handlers(void)
{
    char heard[256];
    int const status = play(keeps_others, heard);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == HEARD);
}

/* ---- the stack ---- */

static bool has_stack(void)
{
    stack_t now;
    return sigaltstack(NULL, &now) == 0 && (now.ss_flags & SS_DISABLE) == 0;
}

static void gets_a_stack(void)
{
    static uint8_t own[64 * 1024];
    stack_t const none = {.ss_flags = SS_DISABLE}, mine = {.ss_sp = own, .ss_size = sizeof own};
    (void)sigaltstack(&none, NULL);                           /* a sanitizer's */
    bool good = fatal_thread_begin() == NULL && !has_stack(); /* nobody listens */
    fatal_listen(first);
    void *const stack = fatal_thread_begin();
    good = good && stack != NULL && has_stack();
    good = good && fatal_thread_begin() == NULL && has_stack(); /* already has one */
    fatal_thread_end(NULL);
    good = good && has_stack();
    fatal_thread_end(stack);
    good = good && !has_stack();
    good = good && sigaltstack(&mine, NULL) == 0 && fatal_thread_begin() == NULL && has_stack();
    fatal_unlisten(first);
    _exit(good ? HEARD : 1);
}

static void test_the_stack(void)
{
    char heard[256];
    int const status = play(gets_a_stack, heard);
    CU_ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == HEARD);
}

static const struct thole_test tests[] = {{"what is heard", test_what_is_heard},
                                          {"whose handlers", test_whose_handlers},
                                          {"the stack", test_the_stack}};
THOLE_TEST_MAIN("fatal signals", tests)
