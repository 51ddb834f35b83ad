#include "wrap_log_fits.h"

thole_status __wrap_log_fit_check(struct engine_host *engine, struct request *request)
{
    (void)engine, (void)request;
    return THOLE_OK;
}
