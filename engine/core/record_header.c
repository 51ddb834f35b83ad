#include "record_header.h"

enum {
    BODY_FIRST = 6,
    BODY_LAST = 14, /* the last field number that is reserved for bodies */
};

/* Whether it has a body, of a known kind or of an unknown, newer one. */
static bool has_body(const Thole__V1__Record *pb)
{
    bool has = pb->body_case != THOLE__V1__RECORD__BODY__NOT_SET;
    for (unsigned i = 0; i < pb->base.n_unknown_fields; i++)
        has |= pb->base.unknown_fields[i].tag >= BODY_FIRST && pb->base.unknown_fields[i].tag <= BODY_LAST;
    return has;
}

thole_status record_header_check(const Thole__V1__Record *pb, thole_error *reterr)
{
    unsigned long long const epoch = pb->epoch, n = pb->n, committed = pb->committed;
    bool const opens = pb->body_case == THOLE__V1__RECORD__BODY_EPOCH_OPENED;
    bool const deletes = pb->body_case == THOLE__V1__RECORD__BODY_DELETED;
    /* Every format has an epoch and a body; anything else is no record. */
    if (pb->format > RECORD_FORMAT && pb->epoch > 0 && has_body(pb))
        return thole_fail(reterr, THOLE_UNSUPPORTED, "record format %u, this engine knows %d", pb->format,
                          RECORD_FORMAT);
    if (pb->format > RECORD_FORMAT || pb->format < (deletes ? RECORD_FORMAT_DELETED : RECORD_FORMAT_FIRST))
        return thole_fail(reterr, THOLE_CORRUPT, "record of format %u", pb->format);
    if (pb->epoch == 0)
        return thole_fail(reterr, THOLE_CORRUPT, "record without an epoch");
    if (opens != (pb->n == 0) && pb->body_case != THOLE__V1__RECORD__BODY__NOT_SET)
        return thole_fail(reterr, THOLE_CORRUPT, "record number %llu in epoch %llu", n, epoch);
    if (pb->committed > pb->n)
        return thole_fail(reterr, THOLE_CORRUPT, "record %llu says that %llu are committed", n, committed);
    return THOLE_OK;
}
