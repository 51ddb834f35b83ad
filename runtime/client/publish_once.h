/*
 * The publish of a request under an id of the caller's. NATS knows for two minutes that the inbox has one
 * with that id, and then says which message it was: what asks for something else is refused, as engines would
 * drop it without a word. A first publish costs nothing more.
 */
#ifndef THOLE_PUBLISH_ONCE_H
#define THOLE_PUBLISH_ONCE_H
#include "message.h"
#include "watch.h"

/* As watch_publish(). @p message: what the letter says; its request id is the caller's. THOLE_CONFLICT:
 * another one was stored under it before, and this one is not. */
THOLE_NODISCARD thole_status publish_once(struct watch *watch, const struct letter *letter,
                                          const struct message *message, uint64_t until_ms,
                                          thole_error *reterr);
#endif
