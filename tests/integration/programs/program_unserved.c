/*
 * The user's program of test_unserved.c. Its workers know the activities that $UNSERVED_KNOWS names,
 * separated by commas; its orchestration runs the one that its input names. Each run of one appends a line to
 * $UNSERVED_DIR/runs.
 */
#include "thole/program.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 8 };

static thole_status run(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    char path[512], line[300];
    const char *const dir = getenv("UNSERVED_DIR");
    (void)snprintf(path, sizeof path, "%s/runs", dir == NULL ? "." : dir);
    int const fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    int const len = snprintf(line, sizeof line, "%.*s\n", THOLE_FMT(thole_activity_instance(act)));
    ssize_t const written = write(fd, line, (size_t)len); /* lines of several processes do not mix */
    (void)written;
    (void)close(fd);
    *ret_output = thole_activity_format(act, "done: %.*s", THOLE_FMT(input));
    return THOLE_OK;
}

static thole_status one(thole_ctx *ctx, thole_slice input, thole_slice *ret_output)
{
    return thole_await(ctx, thole_call(ctx, input, input), ret_output);
}

int main(int argc, char **argv)
{
    static const thole_orchestration_entry orchestrations[] = {{"one", one}};
    static thole_activity_entry activities[NAMES_MAX];
    static char names[256];
    size_t n = 0;
    const char *const known = getenv("UNSERVED_KNOWS");
    (void)snprintf(names, sizeof names, "%s", known == NULL ? "" : known);
    for (char *rest = names, *name; n < NAMES_MAX && (name = strsep(&rest, ",")) != NULL;)
        if (name[0] != '\0')
            activities[n++] = (thole_activity_entry){.name = name, .run = run};
    thole_program const program = {.size = sizeof program,
                                   .name = "unserved",
                                   .orchestrations = orchestrations,
                                   .orchestrations_len = 1,
                                   .activities = n == 0 ? NULL : activities,
                                   .activities_len = n};
    return thole_main(argc, argv, &program);
}
