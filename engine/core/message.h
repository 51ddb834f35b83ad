/* Inbox messages as plain structs, and their codec to and from proto/messages.proto. Pure. */
#ifndef THOLE_MESSAGE_H
#define THOLE_MESSAGE_H
#include "arena.h"
#include "buf.h"
#include "event.h"
#include "identity.h"

enum {
    MESSAGE_FORMAT = 1,
    MESSAGE_BYTES_MAX = 8 * 1024 * 1024,
    REASON_BYTES_MAX = 1024,
    /* A client's is at most 200 bytes and does not begin with '<'. Executions generate theirs:
     * "<execution.event.instance". */
    REQUEST_ID_BYTES_MAX = 256,
    DETAILS_BYTES_MAX = 16 * 1024, /* of a heartbeat */
    NONCE_BYTES_MAX = 64,          /* a longer one is no message; see nonce.h */
};

/* Values are those of the oneof's field numbers in messages.proto. */
enum message_kind {
    MESSAGE_START = 3,
    MESSAGE_ACTIVITY_RESULT = 4,
    MESSAGE_CANCEL = 5,
    MESSAGE_EVENT = 6,
    MESSAGE_CHILD_RESULT = 7,
    MESSAGE_TERMINATE = 8,
    MESSAGE_PAUSE = 9,
    MESSAGE_RESUME = 10,
    MESSAGE_DELETE = 11,
    MESSAGE_RELEASE = 12,
    MESSAGE_PRUNE = 13,
    MESSAGE_RETRY = 14,
};
#define MESSAGE_LAST MESSAGE_RETRY

struct message {
    enum message_kind kind;
    thole_slice instance;
    /* START: orchestration, version, data = input, request_id, parent; event_name (empty = none), event_data:
     * delivered too, with request_id. ACTIVITY_RESULT: execution, task, status, try_number (0 read as 1),
     * data = output or failure text, error_type, final, details, place; lost > 0: it was not run,
     * lost_worker, queue, input. EVENT: event_name, event_data, request_id. CHILD_RESULT: execution, task,
     * status, data, error_type, child. CANCEL, TERMINATE, PAUSE, RESUME, RETRY: data = reason, request_id;
     * the first two also parent: only that child is meant.
     * DELETE: data = reason, request_id, execution (the newest that the client saw; 0 = any), force. PRUNE:
     * data = reason, request_id, execution (those before it are pruned). RELEASE: execution, task, try_number
     * (0 = any), fail (else it is tried again); timer: task is a timer, which fires. */
    thole_slice orchestration, data, request_id, event_name, event_data, error_type, details, child;
    struct origin parent;
    struct trace trace;         /* START: valid */
    struct event_source source; /* the sender by its own account: authenticated is not in the message;
                                   ACTIVITY_RESULT: where it ran */
    uint64_t execution, task;   /* task: id of the event that scheduled it */
    thole_slice lost_worker, queue, input;
    thole_slice nonce; /* ACTIVITY_RESULT: see nonce.h */
    uint32_t status, try_number, version, lost;
    bool final, fail, force, timer;
};

/* THOLE_INVALID: a number is not in its range, which message_encode_said() says in words. THOLE_LIMIT, NOMEM.
 */
THOLE_NODISCARD thole_status message_encode(const struct message *message, struct buf *to);
THOLE_NODISCARD thole_status message_encode_said(const struct message *message, struct buf *to,
                                                 thole_error *reterr);
/* Each number beyond its range, as an older history or a clock may have it, becomes the nearest in it. */
void message_into_range(struct message *message);
/* Copies into @p arena. THOLE_CORRUPT, THOLE_UNSUPPORTED (newer format or unknown kind), THOLE_LIMIT, NOMEM.
 * Checks ids and names (id_check, name_check) and sizes, so the result is valid in form. */
THOLE_NODISCARD thole_status message_decode(thole_slice bytes, struct arena *arena, struct message *ret,
                                            thole_error *reterr);

/* An engine's heartbeat. Name lists are arrays of slices, each "name" or "name@version" (beyond version 1).
 */
struct partition_needs {
    uint32_t partition;
    const thole_slice *orchestrations;
    size_t orchestrations_len;
};
struct heartbeat {
    thole_slice node;
    uint64_t started_ms;
    const thole_slice *orchestrations;
    size_t orchestrations_len;
    const struct partition_needs *needs;
    size_t needs_len;
    bool takes_results;    /* several in one message: result_list.h */
    bool reads_ranges;     /* of a record's inbox position: record_position.h */
    bool reads_references; /* to payloads of a record: record_references.h */
    bool reads_lists;      /* of dispensable records: struct folded */
};
THOLE_NODISCARD thole_status heartbeat_encode(const struct heartbeat *heartbeat, struct buf *to);
THOLE_NODISCARD thole_status heartbeat_decode(thole_slice bytes, struct arena *arena, struct heartbeat *ret,
                                              thole_error *reterr);
#endif
