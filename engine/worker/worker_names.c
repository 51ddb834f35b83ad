#include "worker.h"

const char *worker_path_name(enum worker_path path)
{
    switch (path) {
    case WORKER_PATH_PUSH: return "push";
    case WORKER_PATH_RENEWAL: return "renewal";
    case WORKER_PATH_LEASE_LOST: return "lease_lost";
    case WORKER_PATH_SHUTDOWN: return "shutdown";
    case WORKER_PATH_TIMEOUT: return "timeout";
    }
    return "?";
}

const char *worker_end_name(enum worker_end end)
{
    switch (end) {
    case WORKER_END_COMPLETED: return "completed";
    case WORKER_END_GONE: return "gone";
    case WORKER_END_CANCELLED: return "cancelled";
    case WORKER_END_REFUSED: return "refused";
    case WORKER_END_STOLEN: return "stolen";
    case WORKER_END_LEASE_LOST: return "lease_lost";
    case WORKER_END_UNCLAIMED: return "unclaimed";
    case WORKER_END_UNKNOWN: return "unknown";
    case WORKER_END_HANDED_BACK: return "handed_back";
    case WORKER_END_LATER: return "later";
    case WORKER_END_DEFERRED: return "deferred";
    case WORKER_END_HELD: return "held";
    case WORKER_END_FORGED: return "forged";
    case WORKER_END_UNSERVED: return "unserved";
    }
    return "?";
}
