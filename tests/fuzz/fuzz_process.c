/* Any bytes as what a process says to its worker: nothing crashes, what is accepted is good in form. */
#include "process_frame.h"
#include <assert.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_body(enum frame_kind kind, thole_slice body, struct arena *arena)
{
    struct process_return returned;
    struct process_run run;
    assert(body.len <= FRAME_BYTES_MAX);
    if (kind == FRAME_RETURNED && process_return_decode(body, arena, &returned, NULL) == THOLE_OK)
        assert(error_type_check(returned.error_type, NULL) == THOLE_OK);
    if (kind == FRAME_RUN && process_run_decode(body, arena, &run, NULL) == THOLE_OK)
        assert(id_check(run.instance, NULL) == THOLE_OK && run.details.len <= DETAILS_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int ends[2];
    struct frame_reader reader;
    struct arena arena;
    enum frame_kind kind;
    thole_slice body;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return 0;
    arena_init(&arena, 1024 * 1024);
    frame_reader_init(&reader, ends[1]);
    ssize_t const sent = size == 0 ? 0 : send(ends[0], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent;
    (void)close(ends[0]);
    while (frame_read(&reader, &kind, &body) == FRAME_WHOLE)
        check_body(kind, body, &arena);
    check_body(FRAME_RETURNED, (thole_slice){data, size}, &arena);
    check_body(FRAME_RUN, (thole_slice){data, size}, &arena);
    frame_reader_release(&reader);
    arena_release(&arena);
    (void)close(ends[1]);
    return 0;
}
