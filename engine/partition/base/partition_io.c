#include "partition_io.h"
#include "tables.h"
#include <assert.h>
#include <string.h>

/* PARTITION_IN_OPEN, which answers no output, stands for "no answer". */
static enum partition_in_kind answer_kind(enum partition_out_kind kind)
{
    switch (kind) {
    case PARTITION_OUT_READ_TAIL: return PARTITION_IN_TAIL;
    case PARTITION_OUT_DELETE_RECORDS: return PARTITION_IN_DELETED;
    case PARTITION_OUT_APPEND: return PARTITION_IN_APPENDED;
    case PARTITION_OUT_READ_LOG: return PARTITION_IN_LOG;
    case PARTITION_OUT_LOAD: return PARTITION_IN_HISTORY;
    case PARTITION_OUT_READ_IDS: return PARTITION_IN_IDS;
    case PARTITION_OUT_REMOVE_HISTORY:
    case PARTITION_OUT_REMOVE_RECORDS: return PARTITION_IN_REMOVED;
    case PARTITION_OUT_FIND_DISPENSABLE: return PARTITION_IN_DISPENSABLE;
    case PARTITION_OUT_STORE_OPEN: return PARTITION_IN_STORE_OPENED;
    case PARTITION_OUT_STORE_RESET: return PARTITION_IN_STORE_RESET;
    case PARTITION_OUT_READ_LIVE: return PARTITION_IN_LIVE;
    case PARTITION_OUT_READ_TIMERS: return PARTITION_IN_TIMERS;
    case PARTITION_OUT_APPLY: return PARTITION_IN_APPLIED;
    case PARTITION_OUT_PUBLISH_WORK: return PARTITION_IN_PUBLISHED;
    case PARTITION_OUT_SEND: return PARTITION_IN_SENT;
    case PARTITION_OUT_EMIT: return PARTITION_IN_EMITTED;
    case PARTITION_OUT_READ_INBOX: return PARTITION_IN_INBOX_BACK;
    case PARTITION_OUT_READ_RESULTS: return PARTITION_IN_RESULTS;
    case PARTITION_OUT_REJECT: return PARTITION_IN_REJECTED;
    case PARTITION_OUT_READ_CRASHES: return PARTITION_IN_CRASHES;
    case PARTITION_OUT_CLOSED:
    case PARTITION_OUT_OPENED:
    case PARTITION_OUT_PUSH_CANCEL:
    case PARTITION_OUT_WITHDRAW:
    case PARTITION_OUT_NOTICE:
    case PARTITION_OUT_LINE:
    case PARTITION_OUT_STOPPED:
    case PARTITION_OUT_LIMITED:
    case PARTITION_OUT_PURGE_INBOX:
    case PARTITION_OUT_CRASHED:
    case PARTITION_OUT_CRASHES_OVER:
    case PARTITION_OUT_QUERY_ANSWER: break;
    }
    return PARTITION_IN_OPEN;
}

const char *partition_limit_name(enum partition_limit limit)
{
    static const char *const names[PARTITION_LIMITS] = {
        [LIMIT_EXECUTIONS] = "executions", [LIMIT_TURNS] = "turns"};
    return names[limit];
}

bool partition_is_answered(enum partition_out_kind kind)
{
    return answer_kind(kind) != PARTITION_IN_OPEN;
}

struct partition_in partition_answer(const struct partition_out *out)
{
    struct partition_in in;
    assert(partition_is_answered(out->kind));
    memset(&in, 0, sizeof in); /* an initialiser does not zero all bytes of a union */
    in.kind = answer_kind(out->kind);
    in.generation = out->generation;
    in.token = out->token;
    return in;
}

uint64_t instance_id_hash(thole_slice id)
{
    uint64_t const hash = key_hash(id, 0, 0);
    return hash + (hash == 0);
}
