/* Answers to queries, in the form in which they were asked. */
#ifndef THOLE_QUERY_REPLY_H
#define THOLE_QUERY_REPLY_H
#include "connection.h"
#include "query_message.h"

/* THOLE_LIMIT: JSON takes a third more bytes than the payload that is in it, so it does not fit into a
 * message. */
THOLE_NODISCARD thole_status query_reply(struct connection *connection, const char *reply, bool json,
                                         const struct query_answer *said, thole_error *reterr);
/* A status and its text, or, with THOLE_OK, the output. An answer that cannot be sent is a line in the log.
 */
void query_reply_text(struct connection *connection, const char *reply, bool json, thole_status status,
                      const char *text);
#endif
