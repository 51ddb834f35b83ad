#include "sender_headers.h"
#include "header_names.h"
#include "trace.h"
#include "utf8.h"

static thole_slice name_upto(const struct delivery *delivery, const char *name, size_t bytes_max)
{
    thole_slice const value = delivery_header_any_case(delivery, name);
    return value.len <= bytes_max && utf8_is_valid(value) ? value : (thole_slice){NULL, 0};
}

struct actor sender_headers_read(const struct delivery *delivery, bool *ret_trace_ignored)
{
    struct trace const given = {delivery_header_any_case(delivery, HEADER_TRACEPARENT),
                                delivery_header_any_case(delivery, HEADER_TRACESTATE)};
    struct trace const trace = trace_valid(&given);
    if (ret_trace_ignored != NULL)
        *ret_trace_ignored = given.parent.len > trace.parent.len || given.list.len > trace.list.len;
    return (struct actor){.name = name_upto(delivery, HEADER_ACTOR, ACTOR_NAME_BYTES_MAX),
                          .client = name_upto(delivery, HEADER_CLIENT, ACTOR_CLIENT_BYTES_MAX),
                          .trace = trace};
}
