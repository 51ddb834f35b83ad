/*
 * The input of a record's hash of form 2 (docs/audit.md): the record as it is stored, with the salted hash of
 * each payload in place of the payload. So it is the same before and after a redaction. Pure.
 */
#ifndef THOLE_RECORD_OUTLINE_H
#define THOLE_RECORD_OUTLINE_H
#include "sha256.h"

enum { RECORD_HASHED_FIRST = 1, RECORD_HASHED_OUTLINE = 2 };

/* The form of hash that it says: the field `hashed`; 0: none, which is RECORD_HASHED_FIRST, or it is no
 * record.
 */
uint64_t record_hashed(thole_slice record);
/* Adds the outline to @p to. False: it is no record with notes of payloads as they must be, and what was
 * added is of no use. */
bool record_outline_add(thole_slice record, struct sha256 *to);
#endif
