/* Damaged bytes for a decoder: cut off everywhere, bytes changed, garbage. Deterministic. */
#ifndef THOLE_TORTURE_H
#define THOLE_TORTURE_H
#include "arena.h"
#include "thole_cunit.h"

/* Decodes, looks at all that came out, and returns the status. @p arena is fresh for each call. */
typedef thole_status torture_fn(thole_slice bytes, struct arena *arena, thole_error *reterr);

/* Every prefix; every byte set to each of some values; two bytes at random places; bytes inserted and
 * removed. Any status is fine but one that the decoder may not return, and a crash. Nothing is left on the
 * heap. */
void torture_bytes(torture_fn *decode, thole_slice bytes);
/* Random bytes, and random fields that look like protobuf. */
void torture_garbage(torture_fn *decode, size_t rounds);
/* Every ceiling of the arena below what is needed gives THOLE_LIMIT. */
void torture_arena(torture_fn *decode, thole_slice bytes);

/* Reads every byte of the slice, so that a sanitizer sees it. */
void torture_touch(thole_slice bytes);
#endif
