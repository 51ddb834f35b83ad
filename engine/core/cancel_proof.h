/*
 * What shows a worker that a cancel push is from an engine: each activity in it has a proof, which is made of
 * the activity's nonce (nonce.h). So only those who know the nonce can make one: engines, and the worker that
 * was given the activity. The try, the kind and the reason of the push are part of it: who has seen the push
 * for one try can repeat it, but not make one for the next. Pure.
 */
#ifndef THOLE_CANCEL_PROOF_H
#define THOLE_CANCEL_PROOF_H
#include "tagged_hash.h"

/* What is the same for all activities of a push. @p try_number 0: any try. */
struct tagged_hash cancel_about(uint32_t try_number, thole_slice kind, thole_slice reason);
/* Never changes within a format: docs/wire.md has an example. */
uint64_t cancel_proof(thole_slice nonce, const struct tagged_hash *about);
#endif
