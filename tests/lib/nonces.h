/* The key that partitions have in tests, and results with their nonce. */
#ifndef THOLE_TEST_NONCES_H
#define THOLE_TEST_NONCES_H
#include "nonce.h"
#include "payload_hash.h"

static inline const struct nonce_key *test_nonce_key(void)
{
    static const struct nonce_key key = {.bytes = {1, 2, 3}};
    return &key;
}

/* The key of salts. */
static inline const struct salt_key *test_salt_key(void)
{
    static const struct salt_key key = {.bytes = {4, 5, 6}};
    return &key;
}

/* The message; a result without a nonce gets its own, in @p room. */
static inline struct message test_with_nonce(const struct message *message, struct nonce *room)
{
    struct message with = *message;
    if (message->kind != MESSAGE_ACTIVITY_RESULT || message->nonce.len > 0)
        return with;
    *room = nonce_make(test_nonce_key(), message->instance, message->execution, message->task);
    with.nonce = (thole_slice){(const uint8_t *)room->text, NONCE_TEXT_LEN};
    return with;
}
#endif
