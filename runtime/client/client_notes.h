/* Notes for people about a request that was accepted and changes nothing, or not yet. */
#ifndef THOLE_CLIENT_NOTES_H
#define THOLE_CLIENT_NOTES_H
#include "client_standing.h"

/* An accepted request has no effect until code runs that cannot run now. @p what: "the event"; @p
 * resumes: it lets a paused instance go on. False, and nothing is appended: there is nothing to say. */
bool client_note_idle(struct thole_client *client, thole_slice instance, const char *what, bool resumes,
                      struct buf *to);
/* Like client_note_idle(), by what a request has seen of the instance: nothing is read again. */
bool client_note_standing(const struct standing *standing, thole_slice instance, const char *what,
                          bool resumes, struct buf *to);
/* As thole_client_cancel_with() and thole_client_signal_with(), with what they have seen. */
THOLE_NODISCARD thole_status client_cancel_noted(thole_client *client, thole_slice instance,
                                                 const thole_end_options *options,
                                                 struct standing *ret_standing, thole_error *reterr);
THOLE_NODISCARD thole_status client_signal_noted(thole_client *client, thole_slice instance, thole_slice name,
                                                 thole_slice data, const thole_signal_options *options,
                                                 bool *ret_kept, struct standing *ret_standing,
                                                 thole_error *reterr);
/* Likewise of a cancellation that is about to be asked for: the instance's latest execution has one already,
 * so that another changes nothing. Reads that execution. */
bool client_note_cancelled(struct thole_client *client, thole_slice instance, struct buf *to);
#endif
