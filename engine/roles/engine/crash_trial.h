/*
 * Code that has crashed an engine before is first run in a copy of this process: the shard's thread forks,
 * the copy runs it and ends, the thread waits. What the copy did is thrown away; when it survives, the same
 * is done here.
 *
 * The copy has no other threads. What code of orchestrations may not use anyway (locks, threads) may be held
 * in it for ever by threads that are not there; then it does not end, and counts as endless.
 */
#ifndef THOLE_CRASH_TRIAL_H
#define THOLE_CRASH_TRIAL_H
#include "crash_page.h"

struct crash_trial {
    struct crash_place **place; /* where the thread notes what it runs: in the copy it is another one */
    uint64_t limit_ms;
};
/* A trial always has one, because the partitions of its thread wait for it: --turn-limit, or what that is by
 * default where turns may take for ever. */
uint64_t crash_trial_limit_ms(uint64_t turn_limit_ms);
/* As code_watch.attempt. On a shard's thread; blocks until the copy has ended. */
THOLE_NODISCARD thole_status crash_trial(const struct crash_trial *trial, const struct code_run *run,
                                         void (*body)(void *), void *body_arg, thole_error *reterr);
#endif
