/* The reason why stdout or a file could not be written: that of the write that failed, not of the last call
 * before the question. */
#include "command.h"
#include "thole_cunit.h"
#include "write_flaw.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_full_disk(void)
{
    FILE *const file = fopen("/dev/full", "we");
    for (int i = 0; i < 20000; i++) /* more than a buffer: some write fails long before it is asked */
        (void)fputc('x', file);
    CU_ASSERT(ferror(file) != 0);
    errno = ENOTCONN;
    CU_ASSERT_EQUAL(write_flaw(file), ENOSPC);
    (void)fputc('x', file);
    errno = ENOTCONN;
    CU_ASSERT_EQUAL(write_flaw_close(file), ENOSPC);
    FILE *const large = fopen("/dev/full", "we");
    char text[20000];
    memset(text, 'x', sizeof text);
    CU_ASSERT(fwrite(text, 1, sizeof text, large) < sizeof text || fflush(large) != 0);
    (void)fflush(large); /* nothing is left to be written again */
    errno = ENOTCONN;
    CU_ASSERT_EQUAL(write_flaw_close(large), ENOSPC);
    int const full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    errno = 0;
    CU_ASSERT_EQUAL(write_whole(full, "x", 1), ENOSPC);
    (void)close(full);
}

static void test_reader_is_gone(void)
{
    int ends[2];
    CU_ASSERT_EQUAL(pipe(ends), 0);
    FILE *const file = fdopen(ends[1], "w");
    (void)fputs("to nobody", file);
    (void)close(ends[0]);
    CU_ASSERT(fflush(file) != 0);
    (void)setvbuf(file, NULL, _IONBF, 0); /* nothing is left to be written again */
    errno = 0;
    CU_ASSERT_EQUAL(write_flaw(file), EPIPE);
    CU_ASSERT_EQUAL(write_flaw_close(file), EPIPE);
}

/* Fails once: what was to be written then is lost. */
static ssize_t write_once_failing(void *cookie, const char *bytes, size_t len)
{
    (void)bytes;
    bool *const failed = cookie;
    if (*failed)
        return (ssize_t)len;
    *failed = true;
    errno = EIO;
    return 0;
}

static void test_flaw_that_has_passed(void)
{
    bool failed = false;
    FILE *const file = fopencookie(&failed, "w", (cookie_io_functions_t){.write = write_once_failing});
    (void)fputs("x", file);
    CU_ASSERT(fflush(file) != 0);
    errno = ENOTCONN;
    CU_ASSERT_EQUAL(write_flaw(file), WRITE_FLAW_UNKNOWN);
    CHECK_STR("unknown", write_flaw_text(WRITE_FLAW_UNKNOWN), "an earlier write has failed");
    (void)fclose(file);
}

static void test_nothing_is_wrong(void)
{
    int ends[2];
    char bytes[4] = "";
    CU_ASSERT_EQUAL(pipe(ends), 0);
    FILE *const file = fdopen(ends[1], "w");
    (void)fputs("ab", file);
    CU_ASSERT_EQUAL(write_flaw(file), 0);
    CU_ASSERT_EQUAL(write_whole(ends[1], "c", 1), 0);
    CU_ASSERT_EQUAL(read(ends[0], bytes, 3), 3);
    CHECK_STR("bytes", bytes, "abc");
    CU_ASSERT_EQUAL(write_flaw_close(file), 0);
    (void)close(ends[0]);
}

/* @p to: stdout and stderr of the command; *ret_said: what it says on stderr. */
static int run_version(int to, char said[256])
{
    int ends[2], status = 0;
    char *words[] = {"thole", "version", NULL};
    CU_ASSERT_EQUAL(pipe(ends), 0);
    (void)fflush(stdout);
    pid_t const pid = fork();
    if (pid == 0) {
        (void)dup2(to, STDOUT_FILENO);
        (void)dup2(ends[1], STDERR_FILENO);
        stdout = fdopen(to, "w"); /* with a buffer, as in a program: CUnit has none */
        _exit(cli_main(2, words));
    }
    (void)close(ends[1]);
    ssize_t const n = read(ends[0], said, 255);
    said[n < 0 ? 0 : n] = '\0';
    (void)close(ends[0]);
    (void)waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* thole list | head: nothing is said, and a shell with pipefail sees what it sees of other programs. */
static void test_command_without_reader(void)
{
    int ends[2];
    char said[256];
    CU_ASSERT_EQUAL(pipe(ends), 0);
    (void)close(ends[0]);
    CU_ASSERT_EQUAL(run_version(ends[1], said), 128 + SIGPIPE);
    CHECK_STR("said", said, "");
    (void)close(ends[1]);
    int const full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    CU_ASSERT_EQUAL(run_version(full, said), 1);
    CHECK_STR("said", said, "thole version: cannot write to stdout: No space left on device\n");
    (void)close(full);
}

static const struct thole_test tests[] = {
    {"full disk", test_full_disk},
    {"reader is gone", test_reader_is_gone},
    {"flaw that has passed", test_flaw_that_has_passed},
    {"nothing is wrong", test_nothing_is_wrong},
    {"command without reader", test_command_without_reader},
};

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return thole_run_suite("write_flaw", tests, ARRAY_LEN(tests));
}
