#include "archive_receipt.h"
#include "jscan.h"
#include "sha256.h"
#include <stdio.h>
#include <string.h>

enum { KEY_BYTES = sizeof "signature" - 1 + 4 /* comma, quotes and colon */ };

static void archive_receipt_put_text(const char *ns, thole_slice instance, thole_slice said, struct buf *to)
{
    static const char purpose[] = "thole.receipt.v1"; /* with its NUL */
    static const uint8_t end = 0;
    uint8_t hash[SHA256_BYTES];
    sha256_of((const thole_slice[]){{(const uint8_t *)purpose, sizeof purpose},
                                    thole_slice_from(ns),
                                    {&end, 1},
                                    instance,
                                    {&end, 1},
                                    said},
              6, hash);
    buf_printf(to, "thole/%s/receipt\n", ns);
    note_put_base64(to, hash, sizeof hash);
    buf_text(to, "\n");
}

thole_status archive_receipt_sign(struct json *json, const struct buf *receipt, const char *ns,
                                  thole_slice instance, const struct audit_keys *keys, thole_error *reterr)
{
    struct buf note;
    thole_status status = THOLE_OK;
    if (keys->len == 0)
        return THOLE_OK;
    buf_init(&note, NOTE_TEXT_BYTES_MAX);
    archive_receipt_put_text(ns, instance, buf_bytes(receipt), &note);
    for (size_t i = 0; i < keys->len && status == THOLE_OK; i++)
        status = note_sign(&note, &keys->keys[i], reterr);
    if (status == THOLE_OK)
        status = buf_status(&note);
    if (status == THOLE_OK)
        json_member(json, "signature", buf_bytes(&note));
    buf_release(&note);
    return status;
}

/* The note, appended to @p to, and what is in front of it. False: it has none, or it is not at its end. */
static bool archive_receipt_split(thole_slice receipt, struct buf *to, thole_slice *ret_said)
{
    thole_slice value;
    if (!json_find(receipt, "signature", &value) || !json_text(value, to))
        return false;
    size_t const at = (size_t)(value.ptr - receipt.ptr);
    if (at < KEY_BYTES || at + value.len + 1 != receipt.len)
        return false;
    *ret_said = (thole_slice){receipt.ptr, at - KEY_BYTES};
    return true;
}

static enum archive_signed archive_receipt_check(thole_slice note, const char *ns, thole_slice instance,
                                                 thole_slice said, const struct audit_keys *keys)
{
    enum archive_signed is = ARCHIVE_SIGNED_BY_OTHERS;
    thole_slice text;
    struct buf want;
    buf_init(&want, NOTE_TEXT_BYTES_MAX);
    archive_receipt_put_text(ns, instance, said, &want);
    for (size_t i = 0; i < keys->len && is == ARCHIVE_SIGNED_BY_OTHERS; i++) {
        thole_status const status = note_verify(note, &keys->keys[i], &text, NULL);
        if (status == THOLE_OK && thole_slice_equal(text, buf_bytes(&want)))
            is = ARCHIVE_SIGNED;
        else if (status != THOLE_NOT_FOUND)
            is = ARCHIVE_FORGED;
    }
    buf_release(&want);
    return is;
}

enum archive_signed archive_receipt_verify(thole_slice receipt, const char *ns, thole_slice instance,
                                           const struct audit_keys *keys)
{
    enum archive_signed is = ARCHIVE_NOT_SIGNED;
    thole_slice said, value;
    struct buf note;
    buf_init(&note, NOTE_TEXT_BYTES_MAX);
    if (archive_receipt_split(receipt, &note, &said))
        is = archive_receipt_check(buf_bytes(&note), ns, instance, said, keys);
    else if (json_find(receipt, "signature", &value))
        is = ARCHIVE_FORGED;
    buf_release(&note);
    return is;
}
