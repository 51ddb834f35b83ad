/*
 * The threads that run activity handlers. A handler that does not return in time is abandoned: its thread is
 * counted and replaced by a new one; when it returns later, the thread fills a slot that could not be
 * replaced, or ends. For a handler in a process the process is killed, which takes milliseconds, and its
 * thread is kept.
 */
#ifndef THOLE_HANDLERS_H
#define THOLE_HANDLERS_H
#include "activity_run.h"
#include "thole/program.h"

struct handlers;

/* Starts @p slots threads. They send `finished` of each activity that has returned to @p inbox. At most @p
 * abandoned_max abandoned threads are replaced at a time. */
THOLE_NODISCARD thole_status handlers_create(uint32_t slots, uint32_t abandoned_max, struct mailbox *inbox,
                                             struct handlers **ret, thole_error *reterr);
/* Waits for threads that are not abandoned, and for killed processes. An abandoned thread keeps its memory,
 * frees its activity when it returns, and sends nothing any more. NULL-safe. */
void handlers_destroy(struct handlers *handlers);

/* Runs it on the next free thread. */
void handlers_run(struct handlers *handlers, struct thole_activity *act);
/* True: replaced by a new thread. False: there are too many abandoned threads already, or no thread could be
 * started, or a process has been killed; handlers_replaced() tells when one has returned. @p replace false:
 * the slot is not needed. */
bool handlers_abandon(struct handlers *handlers, struct thole_activity *act, bool replace);
/* Number of slots for which handlers_abandon() returned false, and that were filled since the last call. */
uint32_t handlers_replaced(struct handlers *handlers);
/* Whether it is declared so. */
bool handler_is_quick(const thole_activity_entry *entry);
#endif
