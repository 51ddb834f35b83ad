#include "answer.h"

void answer_init(struct answer *answer)
{
    *answer = (struct answer){.code = 200, .type = "application/json"};
    buf_init(&answer->body, ANSWER_BYTES_MAX);
}

void answer_release(struct answer *answer)
{
    buf_release(&answer->body);
}

void answer_document(struct answer *answer, struct json *json, const char *schema)
{
    json_to_buf(json, &answer->body);
    json_object(json);
    json_member_text(json, "schema", schema);
}

static const char *answer_title(unsigned code)
{
    switch (code) {
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 422: return "Unprocessable Content";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 504: return "Gateway Timeout";
    default: return "Internal Server Error";
    }
}

void answer_problem(struct answer *answer, unsigned code, const char *name, const char *text)
{
    struct json json;
    buf_clear(&answer->body);
    answer->code = code;
    answer->type = "application/problem+json";
    answer->download = false;
    json_to_buf(&json, &answer->body);
    json_object(&json);
    json_member_text(&json, "type", "about:blank");
    json_member_text(&json, "title", answer_title(code));
    json_member_number(&json, "status", code);
    json_member_text(&json, "detail", text);
    json_member_text(&json, "code", name);
    json_end(&json);
}

static unsigned answer_code_of(thole_status status)
{
    switch (status) {
    case THOLE_OK: return 200;
    case THOLE_INVALID: return 400;
    case THOLE_LIMIT: return 413;
    case THOLE_NOT_FOUND: return 404;
    case THOLE_CONFLICT: return 409;
    case THOLE_UNAVAILABLE: return 503;
    case THOLE_UNSUPPORTED: return 501;
    case THOLE_DENIED: return 403;
    case THOLE_TIMEOUT: return 504;
    case THOLE_APP: return 422;
    case THOLE_NOMEM:
    case THOLE_CORRUPT:
    case THOLE_CANCELLED:
    case THOLE_NONDETERMINISM:
    case THOLE_FENCED:
    case THOLE_LATER: return 500;
    }
    return 500;
}

void answer_error(struct answer *answer, const thole_error *error)
{
    answer_problem(answer, answer_code_of(error->status), thole_status_name(error->status), error->text);
}
