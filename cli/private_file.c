#include "private_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = S_IRUSR | S_IWUSR };

int private_file_descriptor(const char *path, int flags)
{
    struct stat about;
    bool const empties = (flags & O_TRUNC) != 0;
    int const fd = open(path, (flags & ~O_TRUNC) | O_CREAT | O_CLOEXEC, MODE);
    if (fd < 0)
        return -1;
    bool good = fstat(fd, &about) == 0;
    if (good && S_ISREG(about.st_mode)) /* emptied when others can open it no more */
        good = ((about.st_mode & ALLPERMS) == MODE || fchmod(fd, MODE) == 0) &&
               (!empties || ftruncate(fd, 0) == 0);
    if (good)
        return fd;
    int const why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

FILE *private_file_open(const char *path, const char *mode)
{
    int const flags = strcmp(mode, "a+") == 0   ? O_RDWR | O_APPEND
                      : strcmp(mode, "wx") == 0 ? O_WRONLY | O_EXCL
                                                : O_WRONLY | O_TRUNC;
    int const fd = private_file_descriptor(path, flags);
    FILE *const file = fd < 0 ? NULL : fdopen(fd, strcmp(mode, "wx") == 0 ? "w" : mode);
    if (fd >= 0 && file == NULL)
        (void)close(fd);
    return file;
}
