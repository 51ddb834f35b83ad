/* The second half of a turn: received events are delivered, and the code runs until it waits or the execution
 * ends. */
#include "instance_run.h"
#include "instance_cancel.h"
#include "instance_code.h"
#include "instance_end.h"
#include "instance_receive.h"
#include <assert.h>

thole_status instance_run(struct instance *in)
{
    assert(in->facts.started && !in->end.ended);
    instance_deliver(in);
    if (in->facts.terminate_received) {
        instance_terminate(in);
        return in->broken;
    }
    cancel_deliver(in);
    THOLE_TRY(code_run(in));
    if (in->code.returned)
        instance_finish(in);
    return in->broken;
}
