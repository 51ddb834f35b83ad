/* The limits of a run in a process, and the failure text for its end. Pure. */
#ifndef THOLE_PROCESS_END_H
#define THOLE_PROCESS_END_H
#include "forkserver.h"

enum process_end {
    PROCESS_RUNS,
    PROCESS_RETURNED, /* the handler has */
    PROCESS_ENDED,    /* before that */
    PROCESS_CLOSED,   /* lives, but has closed its socket */
    PROCESS_BROKEN,   /* wrote bytes to the socket that are no frame */
    PROCESS_WALL,     /* exceeded its time limit */
};

/* The lower of the activity's limit and of the one of all processes; 0 = none. */
uint64_t process_memory_max(const thole_activity_options *options, uint64_t of_all);

enum { PROCESS_TEXT_MAX = 256 };
/* Error type, "crash" or "limit". For what is neither RUNS nor RETURNED. @p life: what the guard has said. */
const char *process_end_text(enum process_end end, const struct life_message *life, bool begun,
                             const thole_activity_options *options, char ret_text[PROCESS_TEXT_MAX]);
#endif
