/* Inside projections/: shared by the files behind projector_store.h. */
#ifndef THOLE_PROJECTOR_PARTS_H
#define THOLE_PROJECTOR_PARTS_H
#include "postgres_call.h"
#include "projector_store.h"

THOLE_NODISCARD thole_status projector_check(uint32_t partition, thole_error *reterr);
/* On this connection, since it was made. */
bool projector_is_opened(const struct postgres *pg, uint32_t partition);
/* A setting, until the end of the transaction. */
void projector_set(struct postgres *pg, const char *name, const char *value);
/* THOLE_FENCED, and why. */
thole_status projector_fenced(uint32_t partition, uint64_t epoch, thole_error *reterr);
thole_status projector_not_open(const struct postgres *pg, uint32_t partition, thole_error *reterr);
#endif
