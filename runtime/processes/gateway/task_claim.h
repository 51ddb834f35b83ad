/*
 * Inside the gateway role: a claim as its worker has it, the text that names a task. It says which row it is
 * about, and which claim of it, so that any gateway can go on with it; no gateway stores anything. What it
 * says of the message (its digest) only those can know who were given the activity: with that the row is
 * compared. The worker cannot use what it holds, and need not know. Pure.
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
