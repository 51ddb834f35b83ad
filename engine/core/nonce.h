/*
 * The nonce of an activity: a secret of the worker that was given the activity. The activity's message in
 * WORK has it, and each result of the activity must have it too, so a client that may write to the inbox
 * cannot complete the activity. The nonce is an HMAC of the activity's place under the namespace's key, which
 * only engines can read: nothing is stored for an activity, and every engine checks alike. All tries of an
 * activity have the same nonce. Pure.
 */
#ifndef THOLE_NONCE_H
#define THOLE_NONCE_H
#include "message_route.h"

enum { NONCE_KEY_BYTES = 32, NONCE_TEXT_LEN = 32 };
struct nonce_key {
    uint8_t bytes[NONCE_KEY_BYTES];
};
struct nonce {
    char text[NONCE_TEXT_LEN + 1]; /* lower-case hexadecimal digits */
};

struct nonce nonce_make(const struct nonce_key *key, thole_slice instance, uint64_t execution,
                        uint64_t activity_id);
/* Whether it could be one: NONCE_TEXT_LEN lower-case hexadecimal digits. */
bool nonce_is_text(thole_slice text);
/* THOLE_INVALID, with a text: @p message is an activity's result without its nonce. Other messages have none,
 * and an engine's own results, which are timeouts, neither. */
THOLE_NODISCARD thole_status nonce_check(const struct nonce_key *key, const struct message *message,
                                         enum message_sender sender, thole_error *reterr);
/* Tells keys apart, and nothing of the key: never 0, fits 63 bits. */
uint64_t nonce_key_mark(const struct nonce_key *key);
/* The key as it is stored: lower-case hexadecimal digits. False: the text is no key. */
struct nonce_key_text {
    char text[2 * NONCE_KEY_BYTES + 1];
};
struct nonce_key_text nonce_key_write(const struct nonce_key *key);
bool nonce_key_read(thole_slice text, struct nonce_key *ret);
#endif
