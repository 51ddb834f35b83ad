#include "partition_io.h"

const char *reject_code_name(enum reject_code code)
{
    switch (code) {
    case REJECT_NONE: break;
    case REJECT_SUBJECT: return "subject";
    case REJECT_PARTITION: return "partition";
    case REJECT_MALFORMED: return "malformed";
    case REJECT_UNSUPPORTED: return "unsupported";
    case REJECT_INSTANCE: return "instance";
    case REJECT_REQUEST_ID: return "request_id";
    case REJECT_TOO_LARGE: return "too_large";
    case REJECT_TOO_MANY: return "too_many";
    case REJECT_ROUTE: return "route";
    case REJECT_NONCE: return "nonce";
    case REJECT_UNREADABLE: return "unreadable";
    case REJECT_EVENT: return "event";
    case REJECT_HELD: return "held";
    case REJECT_HOLD_UNKNOWN: return "hold_unknown";
    }
    return "none";
}
