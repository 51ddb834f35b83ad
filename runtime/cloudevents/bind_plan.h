/* The effect of a rule on a message: the start or the event that is sent to an instance. Pure. */
#ifndef THOLE_BIND_PLAN_H
#define THOLE_BIND_PLAN_H
#include "bind_rule.h"
#include "cloud_event.h"
#include "message.h"

enum {
    BIND_ARENA_MAX = 32 * 1024 * 1024, /* of a plan */
    BIND_REQUEST_ID_BYTES = 128,
};

struct bind_plan {
    struct message message; /* borrows from the message, the rule and the arena */
    char request_id[BIND_REQUEST_ID_BYTES];
    const char *id_from; /* the identifying fields of the message: "ce-source and ce-id", "Nats-Msg-Id",
                            "sequence" */
};
/*
 * The request id is made of the rule's name and the message's id, so that however often the message is
 * delivered it starts or signals once: of the CloudEvent's source and id; else of Nats-Msg-Id; else of the
 * place in the stream and the time when it was stored there.
 *
 * THOLE_INVALID, THOLE_LIMIT: this message can never be taken by this rule; the text says why. THOLE_NOMEM.
 */
THOLE_NODISCARD thole_status bind_plan_make(const struct bind_rule *rule, thole_slice name,
                                            const struct event_message *message, uint64_t payload_max,
                                            struct arena *arena, struct bind_plan *ret, thole_error *reterr);
#endif
