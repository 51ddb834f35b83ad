/*
 * JetStream's requests under another prefix than $JS.API: the account of a user imports them from the account
 * of the streams, with `to:` (a subject that begins with $JS.API is answered by the user's own account), or
 * JetStream is that of a domain. All of streams/ names the subjects as the server does; the prefix is put
 * there when a message is sent.
 */
#ifndef THOLE_API_PREFIX_H
#define THOLE_API_PREFIX_H
#include "api.h"

#define API_PREFIX_DEFAULT "$JS.API"
enum { API_PREFIX_BYTES_MAX = 64 };

/* THOLE_INVALID with a sentence unless it is NULL, the default, or a subject without wildcards of at most 64
 * bytes. */
THOLE_NODISCARD thole_status api_prefix_check(const char *prefix, thole_error *reterr);
/* Of one that was checked. */
void api_prefix_copy(const char *prefix, char ret[API_PREFIX_BYTES_MAX + 1]);
/* @p subject with @p prefix in place of $JS.API, in @p room; @p subject itself if it begins otherwise, if the
 * prefix is the default, or if the result does not fit into @p room: no stream has such a name. */
const char *api_prefix_apply(const char *prefix, const char *subject, char room[API_SUBJECT_BYTES]);
#endif
