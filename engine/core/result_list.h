/*
 * Several results in one message: InboxMessage.results of messages.proto. A worker's results for instances of
 * one partition are stored as one message, and each result counts as if it had come alone. Pure.
 */
#ifndef THOLE_RESULT_LIST_H
#define THOLE_RESULT_LIST_H
#include "buf.h"
#include "wire_fields.h"

enum {
    RESULT_LIST_MAX = 256,       /* results in one message */
    RESULT_LIST_ROOM_BYTES = 32, /* of a message, beside what result_list_add() has written */
};

/* ---- writing: @p list first has the results, in order, and is then made the message ---- */

/* @p message: a result, as message_encode() has written it. */
void result_list_add(struct buf *list, thole_slice message);
/* How many bytes result_list_add() writes. */
size_t result_list_bytes(size_t message_bytes);
void result_list_write(thole_slice list, struct buf *to);
/* The message of a list that has one. */
thole_slice result_list_only(thole_slice list);

/* ---- reading ---- */

struct result_list {
    struct wire_message message, results;
};
struct result_item {
    thole_slice bytes;    /* an InboxMessage; these borrow from the message */
    thole_slice instance; /* the instance that it names: an id */
};
/* *ret_len: how many results it has. THOLE_CORRUPT: it is no such message, it has none, too many, or one
 * without a valid instance; THOLE_UNSUPPORTED: of a newer format. */
THOLE_NODISCARD thole_status result_list_read(thole_slice message, struct result_list *ret, size_t *ret_len,
                                              thole_error *reterr);
/* The next one of a list that result_list_read() has found good; false: there is none. */
bool result_list_next(struct result_list *list, struct result_item *ret);
#endif
