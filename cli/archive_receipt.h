/*
 * The signature of what `archive restore` says of an instance: the last member of the receipt, a signed note
 * of two lines, thole/NAMESPACE/receipt and a SHA-256 in base64, over namespace, instance and what is before
 * it in the receipt. docs/audit.md has the form.
 */
#ifndef THOLE_ARCHIVE_RECEIPT_H
#define THOLE_ARCHIVE_RECEIPT_H
#include "audit_keys.h"
#include "json.h"

/* Adds the member to @p json, which writes to @p receipt; without keys none. */
THOLE_NODISCARD thole_status archive_receipt_sign(struct json *json, const struct buf *receipt,
                                                  const char *ns, thole_slice instance,
                                                  const struct audit_keys *keys, thole_error *reterr);
enum archive_signed {
    ARCHIVE_SIGNED,
    ARCHIVE_NOT_SIGNED,       /* without a signature */
    ARCHIVE_SIGNED_BY_OTHERS, /* but by none of the keys */
    ARCHIVE_FORGED            /* differs from the signed text */
};
enum archive_signed archive_receipt_verify(thole_slice receipt, const char *ns, thole_slice instance,
                                           const struct audit_keys *keys);
#endif
