/* Notices about an instance to others. Pushes and live events are sent at most once, and nothing depends on
 * their arrival: streams/notice.h sends and reads them. CloudEvents are sent until they are stored:
 * streams/emitted.h. */
#ifndef THOLE_NOTICES_H
#define THOLE_NOTICES_H
#include "thole/types.h"
#include "trace.h"
#include <stdbool.h>

struct cancel_notice { /* to the workers that run them */
    thole_slice instance;
    uint64_t execution;
    const uint64_t *activity_ids;
    size_t activity_ids_len;
    const uint64_t *proofs; /* received: of each activity, cancel_proof.h; when it is sent they are made */
    uint32_t try_number;    /* 0: any */
    thole_slice kind;       /* thole_cancel_kind_name() */
    thole_slice reason;
    uint64_t decided_ms; /* wall clock: of the turn; 0: not known, from an older engine */
    bool early;          /* sent before their rows are deleted: another one follows when they are */
    bool repeats;        /* sent: an early one was sent before */
};

struct event_notice {
    const char *kind; /* started, completed, …: streams/notice.h */
    thole_slice orchestration, instance, request_id, data;
    thole_slice code; /* rejected: of a message that stands among the rejected ones, reject_code_name(); data
                         says why */
    uint64_t execution;
    struct trace trace;
};

struct emission { /* a CloudEvent; instance, execution and event identify it */
    thole_slice instance, orchestration;
    thole_slice type, data, error_type; /* error_type: of a failure; may be empty */
    uint64_t execution, event;          /* event 0: the instance was deleted */
    uint64_t time_ms;                   /* of the turn */
    bool is_text;                       /* data is for people */
    struct trace trace;
};
#endif
