/* Core NATS notices: cancellation pushes and live events. Delivered at most once; correctness does not depend
 * on them. */
#ifndef THOLE_NOTICE_H
#define THOLE_NOTICE_H
#include "arena.h"
#include "connection.h"
#include "nonce.h"
#include "notices.h"

enum { CANCEL_NOTICE_IDS_MAX = 2048 }; /* in one message; more are sent in several */

/* struct cancel_notice: headers Thole-Activities: 3,7,12 and Thole-Kind: select_loser, Thole-Proofs: of each
 * activity 16 hexadecimal digits, with commas (cancel_proof.h), and Thole-Try: 2 when only that try of each
 * is meant; Thole-Early: 1 when their rows are still there; the body is the reason. */
THOLE_NODISCARD thole_status cancel_notice_publish(struct connection *connection, const char *ns,
                                                   const struct nonce_key *key,
                                                   const struct cancel_notice *notice, thole_error *reterr);
/* THOLE_CORRUPT for anything malformed: drop it. Copies into @p arena. */
THOLE_NODISCARD thole_status cancel_notice_parse(const struct delivery *delivery, struct arena *arena,
                                                 struct cancel_notice *ret, thole_error *reterr);

/* struct event_notice: its kind is started, completed, failed, cancelled, terminated, continued_as_new,
 * paused, resumed, deleted or rejected (a start under an id in use, a deletion of an instance that has not
 * ended, what stands among the rejected messages: then with Thole-Code, and the body says why). An unknown
 * orchestration is "-". Headers Thole-Execution, Thole-Request (a client's request id, percent-encoded; may
 * be absent); body = output, failure text or reason. */

/* The kinds, from 0; NULL after the last one. */
const char *event_notice_kind(size_t i);
THOLE_NODISCARD thole_status event_notice_publish(struct connection *connection, const char *ns,
                                                  const struct event_notice *notice, thole_error *reterr);
THOLE_NODISCARD thole_status event_notice_parse(const struct delivery *delivery, struct arena *arena,
                                                struct event_notice *ret, thole_error *reterr);
#endif
