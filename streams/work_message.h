/* Inside streams/: from nats.c's message to a work message. */
#ifndef THOLE_WORK_MESSAGE_H
#define THOLE_WORK_MESSAGE_H
#include "link.h"
#include "work.h"
#include "work_names.h"

/* thole.<ns>.work.<queue>.<instance>.<execution>.<activity id>.<try> */
enum { WORK_TOKEN_QUEUE = 3, WORK_TOKEN_INSTANCE = 4, WORK_TOKENS = 8 };

struct work_box {
    struct work_message message; /* first */
    uint8_t instance[THOLE_ID_BYTES_MAX];
};
/* Takes @p native. *ret_bad: what is malformed, or NULL. */
struct work_message *work_message_create(natsMsg *native, const struct work_names *names,
                                         const char **ret_bad);
#endif
