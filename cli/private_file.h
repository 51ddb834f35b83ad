/*
 * Files that hold histories, keys, or what else is not for everybody: the user alone may read and write them,
 * whatever the umask is. Each file that a verb writes is made here, but pages of manuals.
 */
#ifndef THOLE_PRIVATE_FILE_H
#define THOLE_PRIVATE_FILE_H
#include <stdio.h>

enum { PRIVATE_FOLDER_MODE = 0700 };

/* As open(), with O_CLOEXEC; an existing file loses the rights of others first. A device or a pipe keeps
 * them. -1 with errno. */
int private_file_descriptor(const char *path, int flags);
/* As fopen(), for the modes "w", "wx" and "a+". NULL with errno. */
FILE *private_file_open(const char *path, const char *mode);
#endif
