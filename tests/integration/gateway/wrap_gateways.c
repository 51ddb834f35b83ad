#include "wrap_gateways.h"
#include "gateway_request.h"
#include "options.h"
#include "session.h"
#include <string.h>

struct session *__real_session_begin(const struct session_options *options, struct gateway_request *request);
struct session *__wrap_session_begin(const struct session_options *options, struct gateway_request *request)
{
    if (strcmp(options->host->queue, request->name) == 0)
        return __real_session_begin(options, request);
    gateway_refuse(request, THOLE_UNAVAILABLE, "another gateway has this queue: ask again");
    return NULL;
}
