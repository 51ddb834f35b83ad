/*
 * Traces of a crash: no core dump unless it is asked for, and crash reports and logs without payloads. The
 * kernel writes the dumps into the folder that the programs run in.
 */
#include "sanitized.h"
#include "stack.h"
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WAIT_MS = 60000 };

static const char secret[] = "card=SECRET";
static struct stack stack;

struct dumps {
    size_t files, with_secret;
};

static bool file_holds(const char *path, const char *text, uint64_t *ret_bytes)
{
    struct stat st = {0};
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    bool found = false;
    CU_ASSERT_TRUE_FATAL(fd >= 0 && fstat(fd, &st) == 0);
    *ret_bytes = (uint64_t)st.st_size;
    if (st.st_size > 0) {
        void *const bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        CU_ASSERT_TRUE_FATAL(bytes != MAP_FAILED);
        found = memmem(bytes, (size_t)st.st_size, text, strlen(text)) != NULL;
        (void)munmap(bytes, (size_t)st.st_size);
    }
    (void)close(fd);
    return found;
}

/* Looks into the dumps of the folder, and removes them. */
static struct dumps take_dumps(const char *folder)
{
    struct dumps dumps = {0};
    DIR *const dir = opendir(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[512];
        uint64_t bytes;
        if (strncmp(entry->d_name, "core", 4) != 0)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        dumps.files++;
        dumps.with_secret += file_holds(path, secret, &bytes);
        (void)unlink(path);
    }
    (void)closedir(dir);
    return dumps;
}

/* An orchestration crashes in a turn: the process had the input in its memory, and goes on in a new one. */
static struct dumps crash_with(const char *name, const char *option)
{
    char input[64], statement[160];
    uint64_t bytes;
    struct stack_program *const program =
        stack_program_with(&stack, "program_crashes", name, "run", "--node-ttl=2s", option, NULL);
    thole_client *const client = stack_client(&stack);
    (void)snprintf(input, sizeof input, "null order=1;%s", secret);
    CHECK_OK(thole_client_start(client, thole_slice_from(name), THOLE_STR("later"), thole_slice_from(input),
                                NULL, &stack.err),
             &stack.err);
    CU_ASSERT_TRUE(stack_logged(program, "is started again", 1, WAIT_MS));
    (void)snprintf(statement, sizeof statement,
                   "SELECT detail FROM thole_default.instances WHERE instance = '%s' AND status = 3", name);
    uint64_t const end = clock_monotonic_ms() + WAIT_MS;
    while (stack_sql(&stack, statement)[0] == '\0' && clock_monotonic_ms() < end)
        pause_ms(50);
    const char *const report = stack_sql(&stack, statement);
    CU_ASSERT_PTR_NOT_NULL(strstr(report, "SIGSEGV at address 0x0 in write_null"));
    CU_ASSERT_PTR_NULL(strstr(report, "SECRET"));
    CU_ASSERT_FALSE(file_holds(program->log, "SECRET", &bytes));
    thole_client_close(client);
    (void)stack_terminate(program, WAIT_MS);
    return take_dumps(stack.dir);
}

static void test_none(void)
{
    CU_ASSERT_EQUAL(crash_with("none", NULL).files, 0);
}

static void test_full(void)
{
    struct dumps const dumps = crash_with("full", "--core-dumps=full");
    CU_ASSERT(dumps.with_secret > 0);
}

static const struct thole_test tests[] = {
    {"none", test_none},
    {"as the system makes them", test_full},
};

/* Dumps that a program takes, or that go elsewhere, cannot be looked into. */
static bool dumps_come_here(void)
{
    char pattern[128] = "";
    FILE *const file = fopen("/proc/sys/kernel/core_pattern", "re");
    struct rlimit limit = {0, 0};
    bool const plain =
        file != NULL && fgets(pattern, sizeof pattern, file) != NULL && strncmp(pattern, "core", 4) == 0;
    if (file != NULL)
        (void)fclose(file);
    if (!plain || SANITIZED || getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != RLIM_INFINITY)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_CORE, &limit) == 0;
}

int main(void)
{
    skip_without_nats();
    skip_without_postgres();
    if (!dumps_come_here()) {
        fprintf(stderr, "skipped: core dumps are not written into the folder of the program\n");
        return EXIT_SKIPPED;
    }
    stack_start(&stack);
    setenv("CRASHES_FOLDER", stack.dir, 1);
    int const result = thole_run_suite("core dumps", tests, ARRAY_LEN(tests));
    stack_stop(&stack);
    return result;
}
