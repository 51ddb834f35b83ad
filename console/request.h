/* A request, taken apart. Pure. */
#ifndef THOLE_REQUEST_H
#define THOLE_REQUEST_H
#include "arena.h"
#include "buf.h"

enum {
    REQUEST_PARTS_MAX = 6,
    REQUEST_ARGS_MAX = 16,
    REQUEST_ARENA_BYTES = 64 * 1024,
};

struct request_arg {
    const char *name;
    thole_slice value;
};
struct request {
    bool post;
    thole_slice parts[REQUEST_PARTS_MAX]; /* of the path after /api/v1/, decoded */
    size_t parts_len;
    struct request_arg args[REQUEST_ARGS_MAX];
    size_t args_len;
    struct buf body;
    thole_slice user; /* as the proxy names it; empty: not known */
    struct arena arena;
};

void request_init(struct request *request, size_t body_max);
void request_release(struct request *request);
/* @p path: what follows /api/v1/, encoded. THOLE_INVALID: more parts than any route, a wrong % sequence. */
THOLE_NODISCARD thole_status request_path(struct request *request, const char *path, thole_error *reterr);
/* An argument of the query, its value encoded. */
THOLE_NODISCARD thole_status request_arg(struct request *request, const char *name, const char *value,
                                         thole_error *reterr);
/* Empty: not given. */
thole_slice request_value(const struct request *request, const char *name);
/* THOLE_INVALID: an argument that is none of @p names, which stand between blanks. */
THOLE_NODISCARD thole_status request_check_args(const struct request *request, const char *names,
                                                thole_error *reterr);
/* Decimal, at most @p max; @p normally when it is not given. THOLE_INVALID with a sentence. */
THOLE_NODISCARD thole_status request_number(const struct request *request, const char *name,
                                            uint64_t normally, uint64_t max, uint64_t *ret,
                                            thole_error *reterr);
/* The argument "limit", from 1 to @p max. */
THOLE_NODISCARD thole_status request_limit(const struct request *request, uint64_t normally, uint64_t max,
                                           uint64_t *ret, thole_error *reterr);
/* Appends what the % sequences of @p text stand for. */
THOLE_NODISCARD thole_status request_decode(thole_slice text, struct buf *to, thole_error *reterr);
/* The parts are those of @p pattern, "instances/ * /history" without the blanks: a star is any part. */
bool request_is(const struct request *request, const char *pattern);
#endif
