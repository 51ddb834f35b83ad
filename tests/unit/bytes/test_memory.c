/* Small blocks: zeroed, never NULL; without memory the process ends with a sentence. */
#include "memory.h"
#include "sanitized.h"
#include "thole_cunit.h"
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void blocks(void)
{
    static const uint8_t zeroes[64] = {0};
    uint8_t *one = memory_new(sizeof zeroes), *none = memory_new(0), *many = memory_array(8, 8);
    CU_ASSERT(memcmp(one, zeroes, sizeof zeroes) == 0 && memcmp(many, zeroes, sizeof zeroes) == 0);
    CU_ASSERT(none != NULL);
    char *copy = memory_copy("ab\0c", 4), *text = memory_text("abc"), *empty = memory_copy(NULL, 0);
    CU_ASSERT(memcmp(copy, "ab\0c", 5) == 0 && memcmp(text, "abc", 4) == 0 && empty[0] == '\0');
    free(one);
    free(none);
    free(many);
    free(copy);
    free(text);
    free(empty);
}

static void growing(void)
{
    size_t cap = 0, moves = 0;
    uint32_t *items = NULL;
    for (uint32_t n = 0; n < 1000; n++) {
        size_t const before = cap;
        items = memory_reserve(items, &cap, n + 1, sizeof *items);
        CU_ASSERT(cap > n && cap % 16 == 0);
        moves += cap != before;
        items[n] = n;
    }
    CU_ASSERT(items[0] == 0 && items[999] == 999 && cap == 1024);
    CU_ASSERT_EQUAL(moves, 7); /* doubled each time */
    items = memory_reserve(items, &cap, 3000, sizeof *items);
    CU_ASSERT(items[999] == 999 && cap == 4096);
    free(items);
}

static void grows_too_far(void)
{
    volatile size_t n = SIZE_MAX / 4 + 2; /* times 4 it is 4 again; the compiler knows such sizes */
    size_t cap = 0;
    free(memory_reserve(NULL, &cap, n, 4));
}

/* The output of a process that runs @p work; *ret_signal: the signal that killed it. */
static void dies(void (*work)(void), char text[256], int *ret_signal)
{
    int ends[2], status = 0;
    memset(text, 0, 256);
    CU_ASSERT_FATAL(pipe(ends) == 0);
    pid_t const child = fork();
    CU_ASSERT_FATAL(child >= 0);
    if (child == 0) {
        struct rlimit const no_core = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)dup2(ends[1], STDERR_FILENO);
        work();
        _exit(0);
    }
    close(ends[1]);
    for (ssize_t n, len = 0; len < 255 && (n = read(ends[0], text + len, 255 - (size_t)len)) > 0; len += n)
        ;
    close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
    *ret_signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void gives_up(void)
{
    memory_give_up(SIZE_MAX / 4 + 2, 4);
}

static void array_too_large(void)
{
    volatile size_t n = SIZE_MAX / 4 + 2; /* times 4 it is 4 again; the compiler knows such sizes */
    free(memory_array(n, 4));
}

static void no_memory(void)
{
    char text[256];
    int signal_number = 0;
    dies(gives_up, text, &signal_number);
    CU_ASSERT_EQUAL(signal_number, SIGABRT);
    CU_ASSERT(strstr(text, "out of memory for 4611686018427387905 x 4 bytes") != NULL);
    CU_ASSERT(strstr(text, "Try: ") != NULL && text[strlen(text) - 1] == '\n');
    dies(grows_too_far, text, &signal_number);
    CU_ASSERT_EQUAL(signal_number, SIGABRT);
    CU_ASSERT(strstr(text, "out of memory for 4611686018427387905 x 4 bytes") != NULL);
    if (SANITIZED) /* they end the process with words of their own */
        return;
    dies(array_too_large, text, &signal_number);
    CU_ASSERT_EQUAL(signal_number, SIGABRT);
    CU_ASSERT(strstr(text, "out of memory for 4611686018427387905 x 4 bytes") != NULL);
}

static const struct thole_test tests[] = {{"blocks", blocks}, {"growing", growing}, {"no_memory", no_memory}};

int main(void)
{
    return thole_run_suite("memory", tests, ARRAY_LEN(tests));
}
