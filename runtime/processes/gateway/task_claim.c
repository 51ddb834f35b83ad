/*
 * version, execution, activity id, try, attempt, time of the claim, each a varint; digest; nonce; instance;
 * the first bytes of a SHA-256 of all that, so that a text that was damaged names nothing. In base64.
 */
#include "task_claim.h"
#include "jscan.h"
#include "nonce.h"
#include "sha256.h"
#include "text.h"
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

static void check_of(const uint8_t *bytes, size_t len, uint8_t ret[SHA256_BYTES])
{
    sha256_of((const thole_slice[]){THOLE_STR("thole claim"), {bytes, len}}, 2, ret);
}

/* ---- writing ---- */

static uint8_t *task_claim_put_number(uint8_t *to, uint64_t number)
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

static void write_claim(const struct resumed_claim *claim, char ret[TASK_CLAIM_BYTES])
{
    uint8_t bytes[BINARY_BYTES_MAX], check[SHA256_BYTES], *to = bytes;
    struct buf text;
    const struct work_item *const item = &claim->item;
    *to++ = VERSION;
    to = task_claim_put_number(to, item->execution);
    to = task_claim_put_number(to, item->activity_id);
    to = task_claim_put_number(to, item->try_number);
    to = task_claim_put_number(to, claim->attempt);
    to = task_claim_put_number(to, claim->claimed_us);
    to = put_bytes(to, claim->digest.bytes, sizeof claim->digest.bytes);
    to = put_nonce(to, item->nonce);
    to = put_bytes(to, item->instance.ptr, item->instance.len);
    check_of(bytes, (size_t)(to - bytes), check);
    to = put_bytes(to, check, CHECK_BYTES);
    buf_init(&text, TASK_CLAIM_BYTES);
    text_base64(&text, (thole_slice){bytes, (size_t)(to - bytes)});
    (void)snprintf(ret, TASK_CLAIM_BYTES, "%s", buf_cstr(&text));
    buf_release(&text);
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

static const uint8_t *task_claim_take_number(const uint8_t *at, const uint8_t *end, uint64_t most,
                                             uint64_t *ret)
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
    at = task_claim_take_number(at, end, INT64_MAX, &ret->item.execution);
    at = task_claim_take_number(at, end, INT64_MAX, &ret->item.activity_id);
    at = task_claim_take_number(at, end, INT32_MAX, &ret->item.try_number);
    at = task_claim_take_number(at, end, INT64_MAX, &ret->attempt);
    return task_claim_take_number(at, end, INT64_MAX, &ret->claimed_us);
}

static void take_nonce(const uint8_t *at, struct task_claim_bytes *to)
{
    for (size_t i = 0; i < NONCE_BYTES; i++)
        (void)snprintf(to->nonce + 2 * i, 3, "%02x", at[i]);
}

/* Of the bytes of a text. */
static bool take_claim(thole_slice bytes, struct task_claim_bytes *ret_bytes, struct resumed_claim *ret)
{
    uint8_t check[SHA256_BYTES];
    if (bytes.len < 1 + CHECK_BYTES || bytes.ptr[0] != VERSION)
        return false;
    const uint8_t *const end = bytes.ptr + bytes.len - CHECK_BYTES;
    check_of(bytes.ptr, (size_t)(end - bytes.ptr), check);
    const uint8_t *const at = take_numbers(bytes.ptr + 1, end, ret);
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
    return ret->attempt > 0 && ret->item.try_number > 0;
}

bool task_claim_read(const char *text, struct task_claim_bytes *ret_bytes, struct resumed_claim *ret)
{
    char again[TASK_CLAIM_BYTES];
    struct buf bytes;
    *ret = (struct resumed_claim){.gone = true};
    buf_init(&bytes, BINARY_BYTES_MAX);
    bool is = base64_decode(thole_slice_from(text), &bytes) && take_claim(buf_bytes(&bytes), ret_bytes, ret);
    buf_release(&bytes);
    if (is) {
        write_claim(ret, again); /* one text for one claim */
        is = strcmp(text, again) == 0;
    }
    ret->gone = !is;
    return is;
}
