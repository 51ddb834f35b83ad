/*
 * Inside the gateway role: the text that names a task for a remote worker, and holds its claim. The text has
 * the row's key, and the identity of the claim, so any gateway can continue with it; no gateway stores
 * anything. It also has the digest of the message, which is compared with the row: only those who were given
 * the activity can know it. The worker cannot use the contents, and need not know them. Pure.
 */
#ifndef THOLE_TASK_CLAIM_H
#define THOLE_TASK_CLAIM_H
#include "nonce.h"
#include "remote_handlers.h"

enum { TASK_CLAIM_BYTES = 512 + 1 };

/* The text of an activity's claim, when it has been claimed. */
void task_claim_write(const struct thole_activity *act, char ret[TASK_CLAIM_BYTES]);
/* False: no gateway has written that. Copies what it needs to *@p ret_bytes, from where *ret borrows. */
struct task_claim_bytes {
    uint8_t instance[THOLE_ID_BYTES_MAX];
    char nonce[NONCE_TEXT_LEN + 1];
};
bool task_claim_read(const char *text, struct task_claim_bytes *ret_bytes, struct resumed_claim *ret);
#endif
