#include "remote_handlers.h"
#include "arena.h"
#include <assert.h>
#include <string.h>

thole_status remote_handler(thole_activity *act, thole_slice input, thole_slice *ret_output)
{
    const struct remote_return *const returned = act->returned;
    thole_slice token;
    assert(returned != NULL);
    (void)input;
    if (returned->status == THOLE_CANCELLED)
        return THOLE_CANCELLED;
    if (returned->status == THOLE_LATER)
        return thole_activity_later(act, &token); /* the remote handler has the token */
    if (returned->status != THOLE_OK)
        return (returned->final ? thole_activity_fail_final : thole_activity_fail_as)(
            act, returned->type, "%.*s", THOLE_FMT(returned->text));
    if (returned->output.len == 0)
        return THOLE_OK;
    void *const copy = thole_activity_alloc(act, returned->output.len);
    if (copy == NULL)
        return THOLE_NOMEM;
    memcpy(copy, returned->output.ptr, returned->output.len);
    *ret_output = (thole_slice){copy, returned->output.len};
    return THOLE_OK;
}
