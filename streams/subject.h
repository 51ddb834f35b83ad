/*
 * The subject gate: the only code that builds a subject from an id or a name. nats.c does not check
 * subjects, so an unchecked CR LF would inject a protocol command. Pure; fuzzed.
 *
 * One id becomes one token: bytes outside A-Z a-z 0-9 - _ ~ are percent-encoded. Every builder appends to
 * @p to (cleared first) and returns THOLE_INVALID for an id or name that id_check()/name_check() refuses.
 */
#ifndef THOLE_SUBJECT_H
#define THOLE_SUBJECT_H
#include "buf.h"

enum { SUBJECT_BYTES_MAX = 1536, STREAM_NAME_BYTES_MAX = 128, PARTITIONS_MAX = 4096 };

/* CRC-32 (IEEE 802.3) of the id modulo @p partitions. Must never change. */
uint32_t subject_partition(thole_slice instance, uint32_t partitions);

THOLE_NODISCARD thole_status subject_token(struct buf *to, thole_slice id, thole_error *reterr);
/* Back from a token to the id; THOLE_INVALID when the token is not what subject_token() would have made. */
THOLE_NODISCARD thole_status subject_token_decode(thole_slice token, struct buf *to, thole_error *reterr);

/* thole.<ns>.in.<p>.<kind>.<name>.<instance>; @p route: "<kind>.<name>", see message_route.h */
THOLE_NODISCARD thole_status subject_inbox(struct buf *to, const char *ns, uint32_t p, thole_slice route,
                                           thole_slice instance, thole_error *reterr);
/* A pattern for the starts of an instance in its inbox; all of them match one of SUBJECT_STARTS patterns. */
enum { SUBJECT_STARTS = 5 };
THOLE_NODISCARD thole_status subject_starts(struct buf *to, const char *ns, uint32_t p, size_t which,
                                            thole_slice instance, thole_error *reterr);
/* Like subject_inbox(), for clients' requests about an instance: cancel, pause, ... */
enum { SUBJECT_CONTROLS = 2 };
THOLE_NODISCARD thole_status subject_controls(struct buf *to, const char *ns, uint32_t p, size_t which,
                                              thole_slice instance, thole_error *reterr);
/* Like subject_controls(), for requests that delete it. */
enum { SUBJECT_DELETIONS = 4 };
THOLE_NODISCARD thole_status subject_deletions(struct buf *to, const char *ns, uint32_t p, size_t which,
                                               thole_slice instance, thole_error *reterr);
/* Tokens of such a subject; the route is two of them. */
enum { INBOX_TOKEN_KIND = 4, INBOX_TOKEN_INSTANCE = 6 };
/* In place of an instance: several results of workers, for instances of the partition (result_list.h). No id
 * is encoded so. */
THOLE_NODISCARD thole_status subject_results(struct buf *to, const char *ns, uint32_t p, thole_error *reterr);
bool subject_is_results(thole_slice subject);
/* Whether the log of @p p stores messages published on the subject: thole.<ns>.hist.<p>… or
 * thole.<ns>.ctl.<p>…. A stream has other subjects when a user makes the server deliver into it: it stores
 * deliveries under the subject that they had. */
bool subject_is_of_log(thole_slice subject, const char *ns, uint32_t p);
thole_slice subject_inbox_route(thole_slice subject);
/*
 * Appends the actor that NATS's permissions vouch for: .by.<actor> at the end of an inbox subject, and of a
 * request to a gateway or binder. To be called after a builder; an empty actor appends nothing.
 */
THOLE_NODISCARD thole_status subject_add_actor(struct buf *to, thole_slice actor, thole_error *reterr);
enum { INBOX_TOKEN_BY = INBOX_TOKEN_INSTANCE + 1 };
/* Back: the actor of a subject in which "by" would be the token @p by; cleared when it has no such token.
 * THOLE_INVALID: anything else stands there, more follows, or the actor is not encoded as an id is. */
THOLE_NODISCARD thole_status subject_actor(thole_slice subject, size_t by, struct buf *ret,
                                           thole_error *reterr);
/* thole.<ns>.hist.<p>.<instance>.<execution>; EXECUTIONS_ALL gives the wildcard * */
#define EXECUTIONS_ALL UINT64_MAX
#define EXECUTION_DELETED (UINT64_MAX - 1) /* gives SUBJECT_DELETED: the subject of a deletion */
#define SUBJECT_DELETED "deleted"
THOLE_NODISCARD thole_status subject_history(struct buf *to, const char *ns, uint32_t p, thole_slice instance,
                                             uint64_t execution, thole_error *reterr);
THOLE_NODISCARD thole_status
subject_control(struct buf *to, const char *ns, uint32_t p, const char *what,
                thole_error *reterr); /* thole.<ns>.ctl.<p>.<what>: epoch, position */
/* thole.<ns>.audit.<p>.<what>; what NULL gives * */
THOLE_NODISCARD thole_status subject_audit(struct buf *to, const char *ns, uint32_t p, const char *what,
                                           thole_error *reterr);
/* thole.<ns>.restored.<p>.<instance>.<what>; @p what: receipt, a sequence, or * */
THOLE_NODISCARD thole_status subject_restored(struct buf *to, const char *ns, uint32_t p,
                                              thole_slice instance, const char *what, thole_error *reterr);
THOLE_NODISCARD thole_status subject_work(struct buf *to, const char *ns, thole_slice queue,
                                          thole_slice instance, uint64_t execution, uint64_t activity_id,
                                          uint64_t try_number, thole_error *reterr);
/* thole.<ns>.cancel.<instance>.<execution> */
THOLE_NODISCARD thole_status subject_cancel(struct buf *to, const char *ns, thole_slice instance,
                                            uint64_t execution, thole_error *reterr);
/* thole.<ns>.event.<orchestration>.<instance>.<kind>; an empty orchestration or kind gives *, so does
 * an empty instance where the kind is empty */
THOLE_NODISCARD thole_status subject_event(struct buf *to, const char *ns, thole_slice orchestration,
                                           thole_slice instance, const char *kind, thole_error *reterr);
/* thole.<ns>.event.<orchestration>.<instance>.ce.<type>; @p type: dotted_check() */
THOLE_NODISCARD thole_status subject_emitted(struct buf *to, const char *ns, thole_slice orchestration,
                                             thole_slice instance, thole_slice type, thole_error *reterr);
/* thole.<ns>.query.<p>.<query>.<instance>; an empty query or instance gives * */
enum { QUERY_TOKEN_QUERY = 4, QUERY_TOKEN_INSTANCE = 5 };
THOLE_NODISCARD thole_status subject_query(struct buf *to, const char *ns, uint32_t p, thole_slice query,
                                           thole_slice instance, thole_error *reterr);
/* Stream names: kind "IN" or "HIST" with p, or "WORK". Written into @p to. */
THOLE_NODISCARD thole_status stream_name(struct buf *to, const char *ns, const char *kind, int64_t p,
                                         thole_error *reterr); /* p < 0: none */

/* Also names of streams. It is longer than @p with. */
bool subject_begins_with(thole_slice text, const char *with);
/*
 * Whether a request may be answered there: only below _INBOX… or _R_. (another account). Otherwise a request
 * could name an inbox or history subject for its reply, and the engine would write to it with its own
 * permissions.
 */
bool subject_is_reply(thole_slice subject);

/* The @p index-th token (from 0) of @p subject; empty when there are fewer. Borrowed. */
thole_slice subject_nth(thole_slice subject, size_t index);
/* The first @p max tokens, for who wants several of them; the others are empty. Returns how many there are,
 * at most @p max. */
size_t subject_split(thole_slice subject, thole_slice *ret, size_t max);
#endif
