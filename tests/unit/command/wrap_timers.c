/* Instances that wait for timers, for the command alone. */
#include "wrap_timers.h"
#include "thole/client.h"
#include "wrap_command_world.h"
#include <stdio.h>

thole_status __wrap_thole_client_inspect(thole_client *client, thole_slice instance,
                                         thole_inspection_fn *each, void *arg, thole_error *reterr)
{
    static const thole_pending pending[] = {
        {.kind = THOLE_PENDING_TIMER, .id = 4, .asked_for_ms = 86400000, .due_ms = UINT64_C(2095891200000)},
        {.kind = THOLE_PENDING_ACTIVITY,
         .id = 5,
         .try_number = 2,
         .waiting = true,
         .asked_for_ms = 86400000,
         .due_ms = UINT64_C(2095891200001)},
        {.kind = THOLE_PENDING_ACTIVITY,
         .id = 7,
         .try_number = 1,
         .waiting = true,
         .quarantined = true,
         .due_ms = UINT64_C(2095891200001)},
        {.kind = THOLE_PENDING_ACTIVITY, .id = 8, .try_number = 1},
        {.kind = THOLE_PENDING_TIMER, .id = 6, .asked_for_ms = 86400000, .due_ms = 86412000},
    };
    thole_inspection const inspection = {
        .execution = 2, .pending = pending, .pending_len = sizeof pending / sizeof pending[0]};
    (void)client;
    if (!thole_slice_equal(instance, THOLE_STR("order")))
        return thole_fail(reterr, THOLE_NOT_FOUND, "there is no instance \"%.*s\"", THOLE_FMT(instance));
    return each(arg, &inspection);
}

thole_status __wrap_thole_client_fire_timer(thole_client *client, thole_slice instance, uint64_t execution,
                                            uint64_t timer, thole_error *reterr)
{
    (void)client;
    (void)printf("< fire timer %llu.%llu of %.*s\n", (unsigned long long)execution, (unsigned long long)timer,
                 THOLE_FMT(instance));
    return command_world_ends(reterr);
}
