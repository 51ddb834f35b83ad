/* The state of an instance by its last record: whether a request changes anything there, and what would
 * help. */
#ifndef THOLE_CLIENT_STANDING_H
#define THOLE_CLIENT_STANDING_H
#include "client_internal.h"
#include "message.h"

enum { STANDING_TEXT_BYTES = 900, STANDING_WHY_BYTES = 1100 };

struct standing {
    bool known;                     /* there is a record that counts, and the instance has not ended */
    enum blocked_kind blocked;      /* BLOCKED_NOT: it runs */
    char why[STANDING_WHY_BYTES];   /* as the last turn says; "": it does not */
    char text[STANDING_TEXT_BYTES]; /* for people, after the instance's id: "is Stuck: ...; thole retry
                                       ..." */
};
void standing_note(struct standing *standing, thole_slice instance, const struct turn *turn);
/* Whether the request does not fit the state: a retry of an instance that is not Stuck (or waits for code), a
 * resume of one that is not paused, another pause. */
bool standing_is_against(const struct standing *standing, enum message_kind kind);
/* THOLE_CONFLICT, with what is so. */
thole_status standing_conflict(const struct standing *standing, enum message_kind kind, thole_slice instance,
                               thole_error *reterr);
/* Of an instance whose code does not run: what there is to say of a request that it got. Unknown in other
 * cases, also when it cannot be read. */
void standing_of_idle(struct thole_client *client, thole_slice instance, struct standing *ret);
#endif
