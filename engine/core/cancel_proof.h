/*
 * The proof that a cancel push is from an engine: each activity in a push has a proof, which is made of the
 * activity's nonce (nonce.h). Only those who know the nonce can make one: engines, and the worker that was
 * given the activity. The proof covers the try, the kind and the reason of the push: a client that has seen
 * the push for one try can repeat it, but not make one for the next. Pure.
 */
#ifndef THOLE_CANCEL_PROOF_H
#define THOLE_CANCEL_PROOF_H
#include "tagged_hash.h"

/* The part of a proof that all activities of a push share. @p try_number 0: any try. */
struct tagged_hash cancel_about(uint32_t try_number, thole_slice kind, thole_slice reason);
/* Never changes within a format: docs/wire.md has an example. */
uint64_t cancel_proof(thole_slice nonce, const struct tagged_hash *about);
#endif
