/* Says of which orchestration a test program dies. */
#ifndef THOLE_KIT_CRASH_H
#define THOLE_KIT_CRASH_H
#include "crash_page.h"

/* The memory in which the kit's machine notes which code runs. */
struct kit_crash {
    struct crash_page *page;
    struct crash_thread thread;
    struct code_watch watch;
};
/* Borrows @p stacks; @p crash must not move. On the thread that the kit is used on. False: out of memory. */
bool kit_crash_watch(struct kit_crash *crash, const struct stack_pool *stacks);
void kit_crash_release(struct kit_crash *crash); /* zeroed: nothing happens */
#endif
