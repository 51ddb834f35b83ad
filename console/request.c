#include "request.h"
#include "jscan.h"
#include "percent.h"
#include "values.h"
#include <stdio.h>
#include <string.h>

void request_init(struct request *request, size_t body_max)
{
    memset(request, 0, sizeof *request);
    buf_init(&request->body, body_max);
    arena_init(&request->arena, REQUEST_ARENA_BYTES);
}

void request_release(struct request *request)
{
    buf_release(&request->body);
    arena_release(&request->arena);
}

thole_status request_decode(thole_slice text, struct buf *to, thole_error *reterr)
{
    for (size_t i = 0; i < text.len; i++) {
        uint8_t byte = text.ptr[i];
        if (byte == '%') {
            int const meant = percent_byte(text, i);
            if (meant < 0)
                return thole_fail(reterr, THOLE_INVALID, "a %% in the address is not followed by two digits");
            byte = (uint8_t)meant;
            i += 2;
        }
        buf_append(to, &byte, 1);
    }
    if (buf_status(to) != THOLE_OK)
        return thole_fail(reterr, THOLE_LIMIT, "a part of the address is too long");
    return THOLE_OK;
}

static thole_status request_decoded(struct request *request, thole_slice text, thole_slice *ret,
                                    thole_error *reterr)
{
    struct buf bytes;
    buf_init(&bytes, REQUEST_ARENA_BYTES);
    thole_status status = request_decode(text, &bytes, reterr);
    if (status == THOLE_OK && arena_dup(&request->arena, buf_bytes(&bytes), ret) != THOLE_OK)
        status = thole_fail(reterr, THOLE_LIMIT, "the address is too long");
    buf_release(&bytes);
    return status;
}

thole_status request_path(struct request *request, const char *path, thole_error *reterr)
{
    for (const char *at = path; *at != '\0';) {
        size_t const len = strcspn(at, "/");
        if (request->parts_len == REQUEST_PARTS_MAX)
            return thole_fail(reterr, THOLE_NOT_FOUND, "there is nothing at this address");
        THOLE_TRY(request_decoded(request, (thole_slice){(const uint8_t *)at, len},
                                  &request->parts[request->parts_len++], reterr));
        at += len + (at[len] == '/' ? 1 : 0);
    }
    return THOLE_OK;
}

thole_status request_arg(struct request *request, const char *name, const char *value, thole_error *reterr)
{
    if (request->args_len == REQUEST_ARGS_MAX)
        return thole_fail(reterr, THOLE_INVALID, "more than %d arguments", REQUEST_ARGS_MAX);
    if (request_value(request, name).len > 0)
        return thole_fail(reterr, THOLE_INVALID, "%.40s is given twice", name);
    struct request_arg *const arg = &request->args[request->args_len++];
    arg->name = name;
    return request_decoded(request, thole_slice_from(value), &arg->value, reterr);
}

thole_slice request_value(const struct request *request, const char *name)
{
    for (size_t i = 0; i < request->args_len; i++)
        if (strcmp(request->args[i].name, name) == 0)
            return request->args[i].value;
    return (thole_slice){NULL, 0};
}

thole_status request_number(const struct request *request, const char *name, uint64_t normally, uint64_t max,
                            uint64_t *ret, thole_error *reterr)
{
    thole_slice const value = request_value(request, name);
    char text[24];
    *ret = normally;
    if (value.len == 0)
        return THOLE_OK;
    (void)snprintf(text, sizeof text, "%.*s", THOLE_FMT(value));
    if (value.len >= sizeof text || strlen(text) != value.len || number_parse(text, ret, NULL) != THOLE_OK ||
        *ret > max)
        return thole_fail(reterr, THOLE_INVALID, "%s must be a number of at most %llu", name,
                          (unsigned long long)max);
    return THOLE_OK;
}

thole_status request_limit(const struct request *request, uint64_t normally, uint64_t max, uint64_t *ret,
                           thole_error *reterr)
{
    THOLE_TRY(request_number(request, "limit", normally, max, ret, reterr));
    return *ret > 0 ? THOLE_OK : thole_fail(reterr, THOLE_INVALID, "limit must be a number from 1");
}

thole_status request_check_args(const struct request *request, const char *names, thole_error *reterr)
{
    size_t place;
    for (size_t i = 0; i < request->args_len; i++)
        if (!json_name_among(names, thole_slice_from(request->args[i].name), &place))
            return thole_fail(reterr, THOLE_INVALID, "there is no argument \"%.40s\" here; there %s%s",
                              request->args[i].name, names[0] == '\0' ? "is none" : "are: ", names);
    return THOLE_OK;
}

bool request_is(const struct request *request, const char *pattern)
{
    size_t i = 0;
    for (const char *at = pattern; *at != '\0'; i++) {
        size_t const len = strcspn(at, "/");
        bool const any = len == 1 && *at == '*';
        if (i >= request->parts_len ||
            (any ? request->parts[i].len == 0
                 : !thole_slice_equal(request->parts[i], (thole_slice){(const uint8_t *)at, len})))
            return false;
        at += len + (at[len] == '/' ? 1 : 0);
    }
    return i == request->parts_len;
}
