/* The place of an instance's record in its history, read without decoding the record. Pure. */
#ifndef THOLE_RECORD_HEAD_H
#define THOLE_RECORD_HEAD_H
#include "record_hash.h"

struct record_head {
    struct record_link before; /* the record of its instance before it; none: it is the first */
    uint64_t turn;             /* number of the turn in its execution; 0: no turn */
    uint64_t first_event;      /* the id of its first event in its execution; 0: it has none */
};
/* False: it does not say what is before it, as an older engine wrote it, or it is no record. */
bool record_head_read(thole_slice record, struct record_head *ret);
#endif
