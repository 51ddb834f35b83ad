/*
 * Which of the stores that not every namespace has were made: a key store_<name> for each in the bucket
 * CONFIG, {"made":true,"last":12}. Engines alone make them, when they set the namespace up, as who may create
 * a stream may have it copy any other one; they mark them before anything is written to them, mark those that
 * an earlier version has made, and keep how far HOLDS and BINDINGS reach. So a store that is not
 * there is known to be lost, or to be none. Blocking.
 */
#ifndef THOLE_MARKED_STORE_H
#define THOLE_MARKED_STORE_H
#include "connection.h"
#include "namespace_verdict.h"

/* No settings: it was not made. THOLE_CORRUPT: it is no mark. */
THOLE_NODISCARD thole_status store_mark_read(struct connection *connection, const char *ns,
                                             enum namespace_store store, struct store_mark *ret,
                                             thole_error *reterr);
/* Marks it as made; one that reaches further stays as it is. */
THOLE_NODISCARD thole_status store_mark_made(struct connection *connection, const char *ns,
                                             enum namespace_store store, uint64_t last, thole_error *reterr);
/* Gives the store up: from now on it counts as never made; an existing one is marked as it is. */
THOLE_NODISCARD thole_status store_mark_forget(struct connection *connection, const char *ns,
                                               enum namespace_store store, thole_error *reterr);

/* For engines: makes the store unless it exists, and marks it. A lost store stays lost: see
 * marked_store_look(). */
THOLE_NODISCARD thole_status marked_store_set_up(struct connection *connection, const char *ns,
                                                 enum namespace_store store, uint32_t replicas,
                                                 thole_error *reterr);
/* For writers: checks that the store exists and is made as specified. THOLE_CONFLICT: it was lost.
 * THOLE_NOT_FOUND: no engine of this version has started. */
THOLE_NODISCARD thole_status marked_store_require(struct connection *connection, const char *ns,
                                                  enum namespace_store store, thole_error *reterr);
/* THOLE_CONFLICT, with what was lost and the two ways on. A store that was never made is THOLE_OK. Reads the
 * mark first, so that a store that is made meanwhile is not taken for a lost one. */
THOLE_NODISCARD thole_status marked_store_check(struct connection *connection, const char *ns,
                                                enum namespace_store store, thole_error *reterr);
/* The verdict, by what STREAM.INFO answers. THOLE_DENIED: this user may not see the store. */
struct marked_store {
    enum store_verdict verdict;
    struct store_mark mark;
    uint64_t last;
};
THOLE_NODISCARD thole_status marked_store_look(struct connection *connection, const char *ns,
                                               enum namespace_store store, struct marked_store *ret,
                                               thole_error *reterr);
/* One clause: what there was, and what there is. */
enum { MARKED_STORE_TEXT_BYTES = 240 };
void marked_store_text(const char *ns, enum namespace_store store, const struct marked_store *seen,
                       char ret[MARKED_STORE_TEXT_BYTES]);
#endif
