/* Requests that come again under their request id: a repetition asks for the same, and is done once. One that
 * asks for something else is refused, as engines would drop it. */
#ifndef THOLE_REPETITION_H
#define THOLE_REPETITION_H
#include "event.h"
#include "message.h"

enum repetition {
    REPETITION_NONE,  /* nothing has the request id and the kind of the message */
    REPETITION_SAME,  /* the message was taken */
    REPETITION_OTHER, /* something else was taken under its request id */
};
/* Which event of the message the turn has: a start (of one with an event: the event), an event, a cancel, a
 * terminate or another request with a reason. Redacted data are not compared. */
enum repetition repetition_in(const struct turn *turn, const struct message *message);
/* Whether two messages have one kind, instance and request id. */
bool repetition_is_of_request(const struct message *message, const struct message *other);
/* Whether two of these ask for the same. */
bool repetition_is_same(const struct message *message, const struct message *other);
/* THOLE_CONFLICT, with what is so. */
thole_status repetition_refuse(const struct message *message, thole_error *reterr);
/* Like repetition_refuse(), with the request that was made under the id @p before. */
thole_status repetition_refuse_after(const struct message *message, const struct message *before,
                                     thole_error *reterr);
#endif
