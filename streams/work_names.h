/* Inside streams/: the names around one queue of the WORK stream. */
#ifndef THOLE_WORK_NAMES_H
#define THOLE_WORK_NAMES_H
#include "subject.h"

struct work_names {
    char stream[STREAM_NAME_BYTES_MAX]; /* THOLE_<ns>_WORK */
    char consumer[80];                  /* q_<queue> */
    char filter[240];                   /* thole.<ns>.work.<queue>.> */
    char ns[72], queue[72];             /* empty: a consumer of another stream, whose messages are no work */
};
THOLE_NODISCARD thole_status work_names_make(const char *ns, thole_slice queue, struct work_names *ret,
                                             thole_error *reterr);
#endif
