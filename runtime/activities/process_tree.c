#include "process_parts.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LIST_BYTES = 4096 };

int process_children(pid_t of, pid_t *ret, int cap)
{
    char path[64], text[LIST_BYTES + 1];
    int n = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)of, (int)of);
    int const fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t const len = read(fd, text, LIST_BYTES);
    (void)close(fd);
    text[len < 0 ? 0 : len] = '\0';
    char *end = text;
    for (char *at = text; n < cap; at = end) {
        pid_t const pid = (pid_t)strtol(at, &end, 10);
        if (end == at || *end == '\0') /* the last one may be cut: each is followed by a space */
            break;
        ret[n++] = pid;
    }
    return n;
}
