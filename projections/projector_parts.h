/* Inside projections/: shared by the files that implement projector_store.h. */
#ifndef THOLE_PROJECTOR_PARTS_H
#define THOLE_PROJECTOR_PARTS_H
#include "postgres_call.h"
#include "projector_store.h"
#include "projector_units.h"

/* Rows of batches. Owns only the arrays; their contents belong to the batches. */
struct gathered {
    struct batch rows;
#define PARTITIONS(kind) uint32_t *kind##_p; /* of each row */
    EACH_ADDED(PARTITIONS)
#undef PARTITIONS
};

THOLE_NODISCARD thole_status projector_check(uint32_t partition, thole_error *reterr);
/* On this connection, since it was made. */
bool projector_is_opened(const struct postgres *pg, uint32_t partition);
/* A setting, until the end of the transaction. */
void projector_set(struct postgres *pg, const char *name, const char *value);
/* The first five parameters of statements that compare the rows of partitions with what their owners know. */
void projector_send_rows(struct postgres *pg, const uint32_t *partition, const uint64_t *epoch,
                         const struct rows_state *rows, size_t stride, size_t n);
/* THOLE_FENCED, and why. */
thole_status projector_fenced(uint32_t partition, uint64_t epoch, thole_error *reterr);
thole_status projector_not_open(const struct postgres *pg, uint32_t partition, thole_error *reterr);
THOLE_NODISCARD thole_status projector_check_partitions(const struct postgres *pg,
                                                        struct batch *const *batches, size_t n,
                                                        thole_error *reterr);

/* The rows that the first statement of the call has taken, one after the other. THOLE_LIMIT: the arena is
 * full. */
THOLE_NODISCARD thole_status projector_read_activities(const struct postgres *pg, struct arena *arena,
                                                       struct batch_activity *ret, thole_error *reterr);

/* projector_apply.c: statements of the call under way. */
/* Locks the partitions' rows in order; fails the pipeline when one is not what the batch follows. */
void projector_send_fence(struct postgres *pg, struct batch *const *batches, size_t n);
/* Why that has failed, once the transaction is over: FENCED or CONFLICT. Of several it is not known which one
 * was refused. */
thole_status projector_fence_failed(struct postgres *pg, struct batch *const *batches, size_t n,
                                    thole_error *reterr);
/* Those of a deletion; none without rows. */
void projector_send_deletes(struct postgres *pg, enum deletes deletes, const struct batch_deletion *rows,
                            size_t n);
/* First tries, removals, later tries: see STATEMENT_ACTIVITIES_ADD. Returns the place of the removals. */
size_t projector_send_activities(struct postgres *pg, const struct gathered *all);
void projector_send_timers(struct postgres *pg, const struct gathered *all);
void projector_send_quarantine(struct postgres *pg, const struct gathered *all);
/* Their rows in instances, in executions, or in both. */
void projector_send_instances(struct postgres *pg, const struct batch_instance *rows,
                              const uint32_t *partitions, size_t n, bool instances, bool executions);

/* projector_apart.c: THOLE_INVALID when the table takes no row, of nobody either. In a transaction. */
THOLE_NODISCARD thole_status projector_check_sound(struct postgres *pg, uint32_t partition,
                                                   enum unit_table table, thole_error *reterr);
#endif
