/* golden_write: writes the golden files of the newest version that are not there yet. */
#include "coro.h"
#include "golden.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NEWEST = 1 };

static void make_folder(const char *group)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s", golden_path(NEWEST, (struct golden){group, ""}, ""));
    path[strlen(path) - 1] = '\0'; /* the slash */
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        perror(path);
        exit(1);
    }
}

static void write_if_new(void *arg, struct golden golden, thole_slice bytes, thole_slice text)
{
    struct buf old;
    (void)arg;
    buf_init(&old, GOLDEN_BYTES_MAX);
    if (!golden_read(golden_path(NEWEST, golden, ".bin"), &old)) {
        make_folder(golden.group);
        golden_write(golden_path(NEWEST, golden, ".bin"), bytes);
        golden_write(golden_path(NEWEST, golden, ".txt"), text);
        printf("%s/%s\n", golden.group, golden.name);
    }
    buf_release(&old);
}

int main(void)
{
    struct stack_pool *stacks = stack_pool_create(4, 16);
    golden_samples(write_if_new, NULL);
    for (size_t i = 0; i < golden_stories_len; i++) {
        struct golden const golden = {"histories", golden_stories[i].name};
        struct buf bytes, text;
        buf_init(&bytes, GOLDEN_BYTES_MAX);
        buf_init(&text, GOLDEN_BYTES_MAX);
        golden_run(&golden_stories[i], stacks, &bytes);
        golden_show(golden, buf_bytes(&bytes), &text);
        write_if_new(NULL, golden, buf_bytes(&bytes), buf_bytes(&text));
        buf_release(&bytes);
        buf_release(&text);
    }
    stack_pool_destroy(stacks);
    return 0;
}
