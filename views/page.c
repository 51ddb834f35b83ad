#include "page.h"
#include "subject.h"
#include "values.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void page_token(char ret[PAGE_TOKEN_BYTES], const uint64_t *numbers, size_t numbers_len, thole_slice instance)
{
    struct buf token, id;
    buf_init(&token, PAGE_TOKEN_BYTES - 1);
    buf_init(&id, PAGE_TOKEN_BYTES - 1);
    for (size_t i = 0; i < numbers_len; i++)
        buf_printf(&token, "%" PRIu64 ".", numbers[i]);
    if (subject_token(&id, instance, NULL) == THOLE_OK)
        buf_printf(&token, "%s", buf_cstr(&id));
    (void)snprintf(ret, PAGE_TOKEN_BYTES, "%s", buf_cstr(&token));
    buf_release(&token);
    buf_release(&id);
}

static bool page_take_number(const char **at, uint64_t *ret)
{
    char digits[24];
    size_t const len = strcspn(*at, ".");
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(len < sizeof digits ? len : sizeof digits - 1), *at);
    if ((*at)[len] != '.' || len == 0 || len >= sizeof digits ||
        number_parse(digits, ret, NULL) != THOLE_OK || *ret > INT64_MAX)
        return false;
    *at += len + 1;
    return true;
}

thole_status page_read(thole_slice token, uint64_t *numbers, size_t numbers_len, struct buf *instance,
                       thole_error *reterr)
{
    char text[PAGE_TOKEN_BYTES];
    const char *at = text;
    bool good = token.len < sizeof text;
    memset(numbers, 0, numbers_len * sizeof *numbers);
    if (token.len == 0)
        return THOLE_OK;
    (void)snprintf(text, sizeof text, "%.*s", good ? (int)token.len : 0, (const char *)token.ptr);
    good = good && strlen(text) == token.len;
    for (size_t i = 0; i < numbers_len && good; i++)
        good = page_take_number(&at, &numbers[i]);
    if (good && subject_token_decode(thole_slice_from(at), instance, NULL) == THOLE_OK && instance->len > 0)
        return THOLE_OK;
    return thole_fail(reterr, THOLE_INVALID,
                      "next: %.60s is no token: give the one that the page before ended with",
                      token.len < sizeof text ? text : "this");
}
