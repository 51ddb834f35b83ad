#include "process_frame.h"
#include "codec.h"
#include "process.pb-c.h"
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* ---- frames ---- */

bool frame_send(int fd, enum frame_kind kind, thole_slice body)
{
    uint32_t head[2] = {(uint32_t)kind, (uint32_t)body.len};
    struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)body.ptr, body.len}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    size_t left = sizeof head + body.len;
    if (body.len > FRAME_BYTES_MAX)
        return false;
    while (left > 0) {
        ssize_t const n = sendmsg(fd, &message, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        size_t sent = n < 0 ? 0 : (size_t)n;
        left -= sent;
        for (size_t i = 0; i < 2; i++) {
            size_t const of_this = sent < parts[i].iov_len ? sent : parts[i].iov_len;
            parts[i].iov_base = (char *)parts[i].iov_base + of_this;
            parts[i].iov_len -= of_this;
            sent -= of_this;
        }
    }
    return true;
}

void frame_reader_init(struct frame_reader *reader, int fd)
{
    *reader = (struct frame_reader){.fd = fd};
    buf_init(&reader->body, FRAME_BYTES_MAX);
}

void frame_reader_release(struct frame_reader *reader)
{
    buf_release(&reader->body);
}

/* Reads into the rest of what is to be filled. */
static enum frame_got process_frame_fill(struct frame_reader *reader, uint8_t *at, size_t want)
{
    while (want > 0) {
        ssize_t const n = recv(reader->fd, at, want, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return FRAME_PART;
        if (n <= 0)
            return FRAME_CLOSED;
        at += n;
        want -= (size_t)n;
        reader->have += (size_t)n;
    }
    return FRAME_WHOLE;
}

/* Takes memory for the body, once the head has come. */
static bool process_frame_make_room(struct frame_reader *reader)
{
    uint32_t const kind = reader->head[0], len = reader->head[1];
    buf_clear(&reader->body);
    return kind >= FRAME_RUN && kind <= FRAME_RETURNED && len <= FRAME_BYTES_MAX &&
           buf_extend(&reader->body, len) != NULL;
}

enum frame_got frame_read(struct frame_reader *reader, enum frame_kind *ret_kind, thole_slice *ret_body)
{
    if (reader->have < FRAME_HEAD_BYTES) {
        enum frame_got const got = process_frame_fill(reader, (uint8_t *)reader->head + reader->have,
                                                      FRAME_HEAD_BYTES - reader->have);
        if (got != FRAME_WHOLE)
            return got;
        if (!process_frame_make_room(reader))
            return FRAME_BROKEN;
    }
    size_t const filled = reader->have - FRAME_HEAD_BYTES;
    enum frame_got const got =
        process_frame_fill(reader, reader->body.ptr + filled, reader->body.len - filled);
    if (got != FRAME_WHOLE)
        return got;
    reader->have = 0;
    *ret_kind = (enum frame_kind)reader->head[0];
    *ret_body = buf_bytes(&reader->body);
    return FRAME_WHOLE;
}

/* ---- bodies ---- */

static thole_status process_frame_encode(const struct codec_message *table, const void *plain, struct buf *to)
{
    struct arena arena;
    ProtobufCMessage *pb;
    arena_init(&arena, CODEC_SCRATCH_MAX);
    thole_status status = codec_to_pb(table, plain, &arena, &pb, NULL);
    if (status == THOLE_OK)
        status = codec_pack(pb, to);
    arena_release(&arena);
    return status;
}

static thole_status process_frame_decode(const struct codec_message *table, thole_slice bytes,
                                         struct arena *arena, void *plain, thole_error *reterr)
{
    struct codec_scratch scratch;
    ProtobufCMessage *pb = NULL;
    codec_init(&scratch);
    thole_status status =
        codec_unpack(table->descriptor, bytes, FRAME_BYTES_MAX, &scratch, "frame", &pb, reterr);
    if (status == THOLE_OK)
        status = codec_from_pb(table, pb, arena, plain, reterr);
    codec_release(&scratch);
    return status;
}

#define CODEC_PLAIN struct process_run
static const struct codec_message run_table = {
    &thole__v1__process_run__descriptor,
    PB_FIELDS(PB_NAME(ProcessRun, queue, queue, "queue"), PB_ID(ProcessRun, instance, instance),
              PB_NAME(ProcessRun, activity, activity, "activity"), PB_BYTES(ProcessRun, input, input),
              PB_UPTO(ProcessRun, details, details, DETAILS_BYTES_MAX, "details"),
              PB_U64(ProcessRun, execution, execution), PB_U64(ProcessRun, activity_id, activity_id),
              PB_U64(ProcessRun, try_number, try_number), PB_U64(ProcessRun, attempt, attempt),
              PB_U64(ProcessRun, deadline_ms, deadline_ms), PB_U32(ProcessRun, partition, partition),
              PB_U32(ProcessRun, version, version), PB_BYTES(ProcessRun, orchestration, orchestration),
              PB_BYTES(ProcessRun, worker, worker),
              PB_UPTO(ProcessRun, nonce, nonce, NONCE_BYTES_MAX, "nonce"),
              PB_BYTES(ProcessRun, traceparent, trace.parent), PB_BYTES(ProcessRun, tracestate, trace.list))};
#undef CODEC_PLAIN
#define CODEC_PLAIN struct process_return
static const struct codec_message return_table = {
    &thole__v1__process_return__descriptor,
    PB_FIELDS(PB_U32(ProcessReturn, status, status), PB_BYTES(ProcessReturn, data, data),
              PB_TYPE(ProcessReturn, error_type, error_type), PB_BOOL(ProcessReturn, final, final),
              PB_BOOL(ProcessReturn, leftovers, leftovers), PB_U32(ProcessReturn, pid, pid))};

thole_status process_run_encode(const struct process_run *run, struct buf *to)
{
    return process_frame_encode(&run_table, run, to);
}

thole_status process_run_decode(thole_slice bytes, struct arena *arena, struct process_run *ret,
                                thole_error *reterr)
{
    return process_frame_decode(&run_table, bytes, arena, ret, reterr);
}

thole_status process_return_encode(const struct process_return *returned, struct buf *to)
{
    return process_frame_encode(&return_table, returned, to);
}

thole_status process_return_decode(thole_slice bytes, struct arena *arena, struct process_return *ret,
                                   thole_error *reterr)
{
    return process_frame_decode(&return_table, bytes, arena, ret, reterr);
}
