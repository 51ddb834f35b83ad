/* Waiting until an event stands in its instance's history, or it is known that it will not. */
#ifndef THOLE_CONFIRM_H
#define THOLE_CONFIRM_H
#include "message.h"
#include "watch.h"

struct confirming {
    uint64_t sequence; /* of the last record that cannot have it */
};
/* Before the event is stored. @p own: its request id is the caller's. *ret_taken: the history has it. */
THOLE_NODISCARD thole_status confirm_begin(struct watch *watch, const struct message *event, bool own,
                                           struct confirming *ret, bool *ret_taken, thole_error *reterr);
/* When it is stored. THOLE_LIMIT: the engine has rejected it; THOLE_CONFLICT: the instance ended before it;
 * THOLE_TIMEOUT: no engine has taken it. */
THOLE_NODISCARD thole_status confirm_await(struct watch *watch, const struct message *event,
                                           struct confirming *confirming, uint64_t until_ms,
                                           thole_error *reterr);
#endif
