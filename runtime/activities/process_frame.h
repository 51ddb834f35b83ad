/*
 * The protocol of a worker and a process that runs its activities: frames over a stream socket, a kind, a
 * length and a body as in proto/process.proto. The worker does not trust what it reads: a handler may have
 * written anything.
 */
#ifndef THOLE_PROCESS_FRAME_H
#define THOLE_PROCESS_FRAME_H
#include "arena.h"
#include "buf.h"
#include "message.h"
#include "trace.h"

enum frame_kind {
    FRAME_RUN = 1,      /* to the process: a process_run */
    FRAME_NOTED = 2,    /* to the worker: a heartbeat's details, as they are */
    FRAME_RETURNED = 3, /* to the worker: a process_return */
};
enum { FRAME_BYTES_MAX = MESSAGE_BYTES_MAX, FRAME_HEAD_BYTES = 8 };

/* Sends all of it; blocks while the other side does not read. False: the other side is gone. */
bool frame_send(int fd, enum frame_kind kind, thole_slice body);

struct frame_reader {
    int fd;
    size_t have; /* bytes of the frame that is read now, head and all */
    uint32_t head[2];
    struct buf body;
};
void frame_reader_init(struct frame_reader *reader, int fd);
void frame_reader_release(struct frame_reader *reader);

enum frame_got {
    FRAME_PART,   /* there is no more to read now */
    FRAME_WHOLE,  /* kind and body; the body lives until the next read */
    FRAME_CLOSED, /* the other side is gone */
    FRAME_BROKEN, /* no frame, or out of memory: read no more */
};
/* Reads the available bytes. Does not block. */
enum frame_got frame_read(struct frame_reader *reader, enum frame_kind *ret_kind, thole_slice *ret_body);

struct process_run {
    thole_slice queue, instance, activity, input, details, nonce;
    uint64_t execution, activity_id, try_number, attempt, deadline_ms;
    uint32_t partition, version;
    thole_slice orchestration, worker;
    struct trace trace;
};
THOLE_NODISCARD thole_status process_run_encode(const struct process_run *run, struct buf *to);
/* Copies into @p arena. THOLE_CORRUPT, THOLE_LIMIT, THOLE_NOMEM. */
THOLE_NODISCARD thole_status process_run_decode(thole_slice bytes, struct arena *arena,
                                                struct process_run *ret, thole_error *reterr);

struct process_return {
    uint32_t status;  /* a thole_status */
    thole_slice data; /* THOLE_OK: the output; else the failure text */
    thole_slice error_type;
    bool final, leftovers; /* leftovers: other processes outlived the handler */
    uint32_t pid;          /* of the process */
};
THOLE_NODISCARD thole_status process_return_encode(const struct process_return *returned, struct buf *to);
/* The inverse of process_return_encode(), with the same statuses. */
THOLE_NODISCARD thole_status process_return_decode(thole_slice bytes, struct arena *arena,
                                                   struct process_return *ret, thole_error *reterr);
#endif
