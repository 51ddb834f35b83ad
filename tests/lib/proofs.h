/* Pushes in tests of the worker's machine: with proofs, as engines make them. */
#ifndef THOLE_TEST_PROOFS_H
#define THOLE_TEST_PROOFS_H
#include "cancel_proof.h"
#include "worker.h"

/* Fills @p room, of as many as there are activities, with the proofs of activities with that nonce. */
static inline struct worker_in test_with_proofs(struct worker_in push, thole_slice nonce, uint64_t *room)
{
    struct tagged_hash const about = cancel_about(push.key.try_number, push.cancel_kind, push.reason);
    for (size_t i = 0; i < push.activity_ids_len; i++)
        room[i] = cancel_proof(nonce, &about);
    push.proofs = room;
    return push;
}
#endif
