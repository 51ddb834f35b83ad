#include "stored_write.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include <stdio.h>

enum { NUMBER_BYTES = 24, HEADERS_MAX = 2 };

static thole_status stored_write_check(thole_slice answer, const char *subject, uint64_t *ret_sequence,
                                       thole_error *reterr)
{
    thole_slice error, found;
    uint64_t sequence = 0, code = 0;
    if (json_find(answer, "error", &error)) {
        if (api_is_wrong_last(error))
            return thole_fail(reterr, THOLE_CONFLICT,
                              "write to %s: another one was first; nothing was changed", subject);
        if (json_find(error, "err_code", &found))
            (void)json_uint(found, &code);
        const char *const full = api_full((uint32_t)code);
        return thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: the server says: %.*s%s%s", subject,
                          THOLE_FMT(error), full == NULL ? "" : "; ", full == NULL ? "" : full);
    }
    if (!json_find(answer, "seq", &found) || !json_uint(found, &sequence))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "write to %s: nothing says that it is stored", subject);
    if (ret_sequence != NULL)
        *ret_sequence = sequence;
    return THOLE_OK;
}

thole_status stored_write(struct connection *connection, const struct stored_write *write,
                          uint64_t *ret_sequence, thole_error *reterr)
{
    char number[NUMBER_BYTES];
    struct header headers[HEADERS_MAX];
    size_t n = 0;
    struct buf answer;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)write->expected);
    if (write->expected != STORED_WRITE_ANY)
        headers[n++] = (struct header){"Nats-Expected-Last-Subject-Sequence", thole_slice_from(number)};
    if (write->operation.len > 0)
        headers[n++] = (struct header){"KV-Operation", write->operation};
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status =
        connection_request_with(connection, write->subject, headers, n, write->body, &answer, reterr);
    if (status == THOLE_OK)
        status = stored_write_check(buf_bytes(&answer), write->subject, ret_sequence, reterr);
    buf_release(&answer);
    return status;
}
