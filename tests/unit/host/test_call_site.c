/* The place of code, in words; looking leaves no memory. */
#include "call_site.h"
#include "thole_cunit.h"
#include <dirent.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>

enum { DESCRIPTORS = 1024 };

static bool open_before[DESCRIPTORS];

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

int __real_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[]);

/* A process that another thread starts now must not get an end of the pipe. */
int __wrap_posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const argv[], char *const envp[])
{
    unsigned ends = 0;
    for (int fd = 0; fd < DESCRIPTORS; fd++) {
        if (open_before[fd] || !is_open(fd))
            continue;
        ends++;
        CU_ASSERT_TRUE((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    }
    CU_ASSERT_EQUAL(ends, 2);
    return __real_posix_spawnp(pid, file, actions, attributes, argv, envp);
}

static size_t count_descriptors(void)
{
    size_t n = 0;
    DIR *const folder = opendir("/proc/self/fd");
    CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

static void test_text(void)
{
    struct buf text;
    buf_init(&text, 4096);
    call_site_text(NULL, &text);
    CHECK_STR("nowhere", buf_cstr(&text), "unknown");
    size_t const before = count_descriptors();
    for (int fd = 0; fd < DESCRIPTORS; fd++)
        open_before[fd] = is_open(fd);
    for (int i = 0; i < 5; i++) {
        buf_clear(&text);
        call_site_text((const void *)((uintptr_t)test_text + 4), &text);
        CU_ASSERT_PTR_NOT_NULL(
            strstr(buf_cstr(&text), "test_")); /* function and file, or at least the program */
    }
    CU_ASSERT_EQUAL(count_descriptors(), before);
    buf_release(&text);
}

static const struct thole_test tests[] = {{"text", test_text}};
THOLE_TEST_MAIN("call_site", tests)
