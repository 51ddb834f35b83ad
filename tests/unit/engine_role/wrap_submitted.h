/* The requests submitted to the executors of a shard: kept, and answered by the test alone. */
#ifndef THOLE_WRAP_SUBMITTED_H
#define THOLE_WRAP_SUBMITTED_H
#include "shard_request.h"

enum { SUBMITTED_MAX = 16 };

struct submitted {
    struct request *requests[SUBMITTED_MAX];
    size_t len;
};
extern struct submitted submitted;

struct request *submitted_last(enum request_kind kind); /* there is one, and it is of this kind */
void submitted_clear(void);                             /* destroys them */
#endif
