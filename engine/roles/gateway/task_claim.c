/*
 * version, execution, activity id, try, attempt, time of the claim, each a varint; digest; nonce; instance;
 * the first bytes of a SHA-256 of all that, so that a text that was damaged names nothing. In base64url.
 */
#include "task_claim.h"
#include "nonce.h"
#include "sha256.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    VERSION = 1,
    VARINT_BYTES_MAX = 10,
    NUMBERS = 5,
    NONCE_BYTES = NONCE_TEXT_LEN / 2,
    CHECK_BYTES = 4,
    BINARY_BYTES_MAX =
        1 + NUMBERS * VARINT_BYTES_MAX + WORK_DIGEST_BYTES + NONCE_BYTES + THOLE_ID_BYTES_MAX + CHECK_BYTES,
};
static_assert((BINARY_BYTES_MAX + 2) / 3 * 4 < TASK_CLAIM_BYTES, "the longest claim has room");

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void check_of(const uint8_t *bytes, size_t len, uint8_t ret[SHA256_BYTES])
{
    sha256_of((const thole_slice[]){THOLE_STR("thole claim"), {bytes, len}}, 2, ret);
}

/* ---- writing ---- */

static uint8_t *put_number(uint8_t *to, uint64_t number)
{
    for (; number >= 128; number >>= 7)
        *to++ = (uint8_t)(number | 128);
    *to++ = (uint8_t)number;
    return to;
}

static uint8_t *put_bytes(uint8_t *to, const uint8_t *bytes, size_t len)
{
    memcpy(to, bytes, len);
    return to + len;
}

static uint8_t digit_value(uint8_t digit)
{
    return (uint8_t)(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

static uint8_t *put_nonce(uint8_t *to, thole_slice nonce)
{
    assert(nonce_is_text(nonce)); /* else the message would not have been taken */
    for (size_t i = 0; i < NONCE_TEXT_LEN; i += 2)
        *to++ = (uint8_t)(digit_value(nonce.ptr[i]) << 4 | digit_value(nonce.ptr[i + 1]));
    return to;
}

static void put_text(const uint8_t *bytes, size_t len, char *to)
{
    for (size_t at = 0; at < len; at += 3) {
        size_t const n = len - at < 3 ? len - at : 3;
        uint32_t group = 0;
        for (size_t i = 0; i < 3; i++)
            group = group << 8 | (i < n ? bytes[at + i] : 0u);
        for (size_t i = 0; i <= n; i++)
            *to++ = letters[group >> (18 - 6 * i) & 63];
    }
    *to = '\0';
}

static void write_claim(const struct resumed_claim *claim, char ret[TASK_CLAIM_BYTES])
{
    uint8_t bytes[BINARY_BYTES_MAX], check[SHA256_BYTES], *to = bytes;
    const struct work_item *const item = &claim->item;
    *to++ = VERSION;
    to = put_number(to, item->execution);
    to = put_number(to, item->activity_id);
    to = put_number(to, item->try_number);
    to = put_number(to, claim->attempt);
    to = put_number(to, claim->claimed_us);
    to = put_bytes(to, claim->digest.bytes, sizeof claim->digest.bytes);
    to = put_nonce(to, item->nonce);
    to = put_bytes(to, item->instance.ptr, item->instance.len);
    check_of(bytes, (size_t)(to - bytes), check);
    to = put_bytes(to, check, CHECK_BYTES);
    put_text(bytes, (size_t)(to - bytes), ret);
}

void task_claim_write(const struct thole_activity *act, char ret[TASK_CLAIM_BYTES])
{
    struct resumed_claim const claim = {.item = act->message->item,
                                        .digest = act->message->digest,
                                        .attempt = act->attempt,
                                        .claimed_us = act->claimed_us};
    write_claim(&claim, ret);
}

/* ---- reading ---- */

/* Of as many bytes as the text's length says; 0: it is no such text. */
static size_t take_text(const char *text, uint8_t *to, size_t cap)
{
    size_t const len = strlen(text);
    uint32_t group = 0;
    size_t n = 0;
    if (len % 4 == 1 || len / 4 * 3 + 2 > cap)
        return 0;
    for (size_t i = 0; i < len; i++) {
        const char *const at = memchr(letters, text[i], sizeof letters - 1);
        if (at == NULL)
            return 0;
        group = group << 6 | (uint32_t)(at - letters);
        if (i % 4 == 0)
            continue;
        to[n++] = (uint8_t)(group >> (6 - 2 * (i % 4)));
    }
    return n;
}

static const uint8_t *take_number(const uint8_t *at, const uint8_t *end, uint64_t most, uint64_t *ret)
{
    uint64_t number = 0;
    for (unsigned shift = 0; at != NULL && at < end && shift < 64; shift += 7, at++) {
        number |= (uint64_t)(*at & 127) << shift;
        if (*at < 128) {
            *ret = number;
            return number <= most ? at + 1 : NULL;
        }
    }
    return NULL;
}

static const uint8_t *take_numbers(const uint8_t *at, const uint8_t *end, struct resumed_claim *ret)
{
    at = take_number(at, end, INT64_MAX, &ret->item.execution);
    at = take_number(at, end, INT64_MAX, &ret->item.activity_id);
    at = take_number(at, end, INT32_MAX, &ret->item.try_number);
    at = take_number(at, end, INT64_MAX, &ret->attempt);
    return take_number(at, end, INT64_MAX, &ret->claimed_us);
}

static void take_nonce(const uint8_t *at, struct task_claim_bytes *to)
{
    for (size_t i = 0; i < NONCE_BYTES; i++)
        (void)snprintf(to->nonce + 2 * i, 3, "%02x", at[i]);
}

bool task_claim_read(const char *text, struct task_claim_bytes *ret_bytes, struct resumed_claim *ret)
{
    uint8_t bytes[BINARY_BYTES_MAX + 3], check[SHA256_BYTES];
    char again[TASK_CLAIM_BYTES];
    *ret = (struct resumed_claim){.gone = true};
    size_t const len = take_text(text, bytes, sizeof bytes);
    if (len < 1 + CHECK_BYTES || bytes[0] != VERSION)
        return false;
    const uint8_t *const end = bytes + len - CHECK_BYTES;
    check_of(bytes, (size_t)(end - bytes), check);
    const uint8_t *const at = take_numbers(bytes + 1, end, ret);
    if (memcmp(check, end, CHECK_BYTES) != 0 || at == NULL || end - at < WORK_DIGEST_BYTES + NONCE_BYTES)
        return false;
    const uint8_t *const id = at + WORK_DIGEST_BYTES + NONCE_BYTES;
    size_t const id_len = (size_t)(end - id);
    if (id_check((thole_slice){id, id_len}, NULL) != THOLE_OK)
        return false;
    memcpy(ret->digest.bytes, at, WORK_DIGEST_BYTES);
    take_nonce(at + WORK_DIGEST_BYTES, ret_bytes);
    memcpy(ret_bytes->instance, id, id_len);
    ret->item.nonce = (thole_slice){(const uint8_t *)ret_bytes->nonce, NONCE_TEXT_LEN};
    ret->item.instance = (thole_slice){ret_bytes->instance, id_len};
    write_claim(ret, again); /* one text for one claim */
    ret->gone = strcmp(text, again) != 0 || ret->attempt == 0 || ret->item.try_number == 0;
    return !ret->gone;
}
