#include "body.h"
#include "jscan.h"
#include "json_check.h"
#include <stdio.h>

thole_status body_check(const struct request *request, const char *names, thole_error *reterr)
{
    thole_slice const text = buf_bytes(&request->body);
    size_t at = 0;
    while (at < text.len &&
           (text.ptr[at] == ' ' || text.ptr[at] == '\n' || text.ptr[at] == '\r' || text.ptr[at] == '\t'))
        at++;
    if (at == text.len || text.ptr[at] != '{' || !json_is_valid(text))
        return thole_fail(reterr, THOLE_INVALID, "the body is no JSON object");
    return json_members_check(text, "", names, reterr);
}

thole_status body_text(thole_slice object, const char *key, enum body_need need, struct buf *to,
                       thole_error *reterr)
{
    thole_slice value;
    bool const there = json_find(object, key, &value) && !thole_slice_equal(value, THOLE_STR("null"));
    if (!there && need == BODY_REQUIRED)
        return thole_fail(reterr, THOLE_INVALID, "\"%s\" is missing", key);
    if (!there || json_text(value, to))
        return THOLE_OK;
    if (buf_status(to) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "\"%s\" is too long", key);
    return thole_fail(reterr, THOLE_INVALID, "\"%s\" is no text", key);
}

static thole_status body_decode(thole_slice value, const char *key, struct buf *to, thole_error *reterr)
{
    struct buf text;
    buf_init(&text, to->max * 2 + 16);
    bool const good = json_text(value, &text) && base64_decode(buf_bytes(&text), to);
    buf_release(&text);
    if (good)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "\"%s\" is not base64", key);
}

thole_status body_data(thole_slice object, const char *key, struct buf *to, thole_error *reterr)
{
    char encoded[64];
    thole_slice value;
    (void)snprintf(encoded, sizeof encoded, "%s_base64", key);
    if (json_find(object, encoded, &value))
        return body_decode(value, encoded, to, reterr);
    if (!json_find(object, key, &value))
        return THOLE_OK;
    if (value.len > 0 && value.ptr[0] == '"')
        return body_text(object, key, BODY_OPTIONAL, to, reterr);
    buf_slice(to, value);
    if (buf_status(to) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "\"%s\" is too long", key);
    return THOLE_OK;
}

thole_status body_number(thole_slice object, const char *key, uint64_t normally, uint64_t *ret,
                         thole_error *reterr)
{
    thole_slice value;
    *ret = normally;
    if (!json_find(object, key, &value) || json_uint(value, ret))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID, "\"%s\" is no number", key);
}

bool body_is_true(thole_slice object, const char *key)
{
    thole_slice value;
    return json_find(object, key, &value) && json_is_true(value);
}
