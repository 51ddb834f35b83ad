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
    free(one);
    free(none);
    free(many);
}

/* What the process says that does this; *ret_signal: what it died of. */
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
    if (SANITIZED) /* they end the process with words of their own */
        return;
    dies(array_too_large, text, &signal_number);
    CU_ASSERT_EQUAL(signal_number, SIGABRT);
    CU_ASSERT(strstr(text, "out of memory for 4611686018427387905 x 4 bytes") != NULL);
}

static const struct thole_test tests[] = {{"blocks", blocks}, {"no_memory", no_memory}};

int main(void)
{
    return thole_run_suite("memory", tests, ARRAY_LEN(tests));
}
