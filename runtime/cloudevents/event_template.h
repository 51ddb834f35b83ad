/*
 * Ids and names made from a message: text with places in braces.
 *
 *   {subject}       the subject                  {subject.3}   its third token, counted from 1
 *   {header.X}      the header X                 {ce.id}       an attribute of the CloudEvent
 *   {json.a.b.0}    in the JSON data: member b of a, its first item; a text, a number, true or false
 *   {stream} {sequence}                          where the message is stored
 *   {{ }}           a brace
 *
 * "|name" at the end, as in {ce.type|name}, writes _ for each byte that no name may have. A value that is
 * missing or empty is an error, never an empty text. Pure.
 */
#ifndef THOLE_EVENT_TEMPLATE_H
#define THOLE_EVENT_TEMPLATE_H
#include "cloud_event.h"

enum { TEMPLATE_BYTES_MAX = 512, TEMPLATE_PLACES_MAX = 16, TEMPLATE_RESULT_MAX = 4096 };

/* Checks the form of a template; the error text names the flaw and lists the possible places. */
THOLE_NODISCARD thole_status event_template_check(thole_slice text, thole_error *reterr);
/* Whether there can be a message that has all of it. @p subject: the filter of the messages. The form was
 * checked. THOLE_INVALID: the text names the place. */
THOLE_NODISCARD thole_status event_template_fits(thole_slice text, thole_slice subject, thole_error *reterr);
/* Appends to @p to. THOLE_INVALID: the message does not have it; the text names the place. THOLE_LIMIT. */
THOLE_NODISCARD thole_status event_template_expand(thole_slice text, const struct event_message *message,
                                                   const struct cloud_event *event, struct buf *to,
                                                   thole_error *reterr);
#endif
