/* Records for tests of their codec. */
#ifndef THOLE_RECORDINGS_H
#define THOLE_RECORDINGS_H
#include "samples.h"
#include "thole_cunit.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (const uint8_t *)("" literal), sizeof(literal) - 1                                                   \
    }

/* Every kind, and one that is not known. */
enum { EVERY_KIND = EVENT_LAST - EVENT_STARTED + 2 };
const struct event *every_kind(void);
/* A turn that ran: record 7 of epoch 3. */
struct record turn_record(const struct event *events, size_t n);
/* Checks that it succeeds; the buffer is the caller's to release. */
void record_bytes(const struct record *record, struct buf *to);
/* Decodes into a new arena; that is the caller's to release. */
thole_status record_read(const struct buf *bytes, struct arena *arena, struct record *ret, thole_error *err);
#endif
