#include "wrap_standing.h"
#include "client_notes.h"
#include "client_standing.h"

void __wrap_standing_of_idle(thole_client *client, thole_slice instance, struct standing *ret)
{
    struct turn const turn = {.blocked = BLOCKED_CRASHED, .blocked_text = THOLE_STR("its code crashed")};
    (void)client;
    *ret = (struct standing){.known = false};
    if (thole_slice_equal(instance, THOLE_STR("stuck")))
        standing_note(ret, instance, &turn);
}

bool __wrap_client_note_cancelled(thole_client *client, thole_slice instance, struct buf *to)
{
    bool const again = thole_slice_equal(instance, THOLE_STR("stuck"));
    (void)client;
    if (again)
        buf_text(to, "its cancellation was asked for already");
    return again;
}

thole_status __wrap_thole_client_explain(thole_client *client, thole_slice instance, thole_hindrance_fn *each,
                                         void *arg, thole_error *reterr)
{
    static const thole_hindrance hindrances[] = {
        {"not_there", {(const uint8_t *)"nobody", 6}, {(const uint8_t *)"start it", 8}},
        {"no_worker", {(const uint8_t *)"activity a waits", 16}, {(const uint8_t *)"start a worker", 14}}};
    (void)client, (void)reterr;
    if (thole_slice_equal(instance, THOLE_STR("late")))
        return each(arg, &hindrances[0]);
    if (!thole_slice_equal(instance, THOLE_STR("slow")))
        return THOLE_OK;
    THOLE_TRY(each(arg, &hindrances[1]));
    return each(arg, &hindrances[1]); /* is said once */
}
