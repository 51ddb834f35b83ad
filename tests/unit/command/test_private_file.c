/* Files that a verb writes are their user's, whatever the umask is and whatever was there. */
#include "private_file.h"
#include "thole_cunit.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/thole-private-XXXXXX", path[64];

static unsigned mode_of(void)
{
    struct stat about;
    return stat(path, &about) == 0 ? about.st_mode & ALLPERMS : 0;
}

static size_t size_of(void)
{
    struct stat about;
    return stat(path, &about) == 0 ? (size_t)about.st_size : 0;
}

/* One that others may read, with a text. */
static void leave_one(unsigned mode)
{
    (void)unlink(path);
    int const fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, "before", 6) == 6 && fchmod(fd, mode) == 0 && close(fd) == 0);
}

static void test_new_ones(void)
{
    static const char *const modes[] = {"w", "wx", "a+"};
    static const mode_t masks[] = {0, 022, 0377};
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        for (size_t k = 0; k < ARRAY_LEN(masks); k++) {
            (void)unlink(path);
            mode_t const before = umask(masks[k]);
            FILE *const file = private_file_open(path, modes[i]);
            CU_ASSERT_PTR_NOT_NULL_FATAL(file);
            CU_ASSERT(fputs("text", file) >= 0);
            CU_ASSERT_EQUAL(fclose(file), 0);
            (void)umask(before);
            CU_ASSERT_EQUAL(mode_of(), 0600);
            CU_ASSERT_EQUAL(size_of(), 4);
        }
}

static void test_there_already(void)
{
    leave_one(0644);
    FILE *file = private_file_open(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(mode_of(), 0600); /* before anything is written */
    CU_ASSERT_EQUAL(size_of(), 0);
    (void)fclose(file);
    leave_one(0640);
    file = private_file_open(path, "a+");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT(fputs(" and after", file) >= 0);
    CU_ASSERT_EQUAL(fclose(file), 0);
    CU_ASSERT_EQUAL(mode_of(), 0600);
    CU_ASSERT_EQUAL(size_of(), 16);
    CU_ASSERT_PTR_NULL(private_file_open(path, "wx"));
    CU_ASSERT_EQUAL(errno, EEXIST);
}

static void test_devices(void)
{
    FILE *const file = private_file_open("/dev/null", "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    (void)fclose(file);
    struct stat about;
    CU_ASSERT_EQUAL(stat("/dev/null", &about), 0);
    CU_ASSERT_EQUAL(about.st_mode & 0666, 0666);
    CU_ASSERT_PTR_NULL(private_file_open("/nowhere/x", "w"));
    CU_ASSERT_EQUAL(errno, ENOENT);
}

static const struct thole_test tests[] = {
    {"new ones", test_new_ones},
    {"one that is there", test_there_already},
    {"devices and none", test_devices},
};

int main(void)
{
    if (mkdtemp(folder) == NULL)
        return 1;
    (void)snprintf(path, sizeof path, "%s/file", folder);
    int const failed = thole_run_suite("private_file", tests, ARRAY_LEN(tests));
    (void)unlink(path);
    (void)rmdir(folder);
    return failed;
}
