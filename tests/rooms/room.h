/* Common parts of the tests of the partition's rooms: a list of outputs, and bytes of records. */
#ifndef THOLE_ROOM_H
#define THOLE_ROOM_H
#include "codec.h"
#include "event.h"
#include "said.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Goes before one thing more. */
static inline const char *said_comma(const struct said *said)
{
    return said->text[0] == '\0' ? "" : ", ";
}

/* Does it abort? It is done in a copy of the process. */
static inline bool room_aborts(void (*body)(void *), void *arg)
{
    int status = 0;
    fflush(NULL);
    pid_t const child = fork();
    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr);
        body(arg);
        _exit(0);
    }
    CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

/* In the arena. */
static inline thole_slice record_bytes(struct arena *arena, const struct record *record)
{
    struct buf bytes;
    thole_slice copy = {0};
    buf_init(&bytes, RECORD_BYTES_MAX);
    CU_ASSERT_EQUAL(record_encode(record, &bytes), THOLE_OK);
    CU_ASSERT_EQUAL(arena_dup(arena, buf_bytes(&bytes), &copy), THOLE_OK);
    buf_release(&bytes);
    return copy;
}
#endif
