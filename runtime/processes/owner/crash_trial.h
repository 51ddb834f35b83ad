/*
 * Code that has crashed an engine before is first run in a copy of this process: the shard's thread forks,
 * the copy runs the code and ends, the thread waits. The copy's results are discarded; if it survives, the
 * code is run in this process.
 *
 * The copy has no other threads. Locks that other threads held at the fork stay locked in it; code of
 * orchestrations must not use locks, and if it does the copy does not end, which counts as a turn without
 * end.
 */
#ifndef THOLE_CRASH_TRIAL_H
#define THOLE_CRASH_TRIAL_H
#include "crash_page.h"

struct crash_trial {
    struct crash_place **place; /* where the thread records what it runs; the copy uses another one */
    uint64_t limit_ms;
};
/* A trial always has a limit, because the partitions of its thread wait for it: --turn-limit, or the default
 * of that if it is 0. */
uint64_t crash_trial_limit_ms(uint64_t turn_limit_ms);
/* As code_watch.attempt. On a shard's thread; blocks until the copy has ended. */
THOLE_NODISCARD thole_status crash_trial(const struct crash_trial *trial, const struct code_run *run,
                                         void (*body)(void *), void *body_arg, thole_error *reterr);
#endif
