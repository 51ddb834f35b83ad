/* Whose child an instance is. What a parent asks of its child names the child by its id, and other instances
 * may have had that id before, or have it now: the origin tells them apart. */
#include "instances_state.h"
#include <stdio.h>
#include <string.h>

bool origins_same(const struct origin *a, const struct origin *b)
{
    return a->execution == b->execution && a->event == b->event &&
           thole_slice_equal(a->instance, b->instance);
}

/* Engines before contract 2.14 say no origin. Their request id, "<execution.event.instance", says who asks,
 * but its event is the cancellation: so a child that the same execution has scheduled under the same id is
 * not told apart. */
static bool origins_requested_by(const struct origin *parent, thole_slice request_id)
{
    char begin[32];
    int const n = snprintf(begin, sizeof begin, "<%llu.", (unsigned long long)parent->execution);
    size_t at = (size_t)n;
    if (parent->instance.len == 0 || request_id.len <= at || memcmp(request_id.ptr, begin, at) != 0)
        return false;
    while (at < request_id.len && request_id.ptr[at] >= '0' && request_id.ptr[at] <= '9')
        at++;
    if (at == request_id.len || request_id.ptr[at] != '.')
        return false;
    at++;
    return thole_slice_equal((thole_slice){request_id.ptr + at, request_id.len - at}, parent->instance);
}

bool origins_mean(const struct entry *entry, const struct pending *pending)
{
    const struct message *m = &pending->message;
    bool const ends = m->kind == MESSAGE_CANCEL || m->kind == MESSAGE_TERMINATE;
    if (!ends || pending->sender != SENDER_ENGINE)
        return true;
    return m->parent.instance.len > 0 ? origins_same(&m->parent, &entry->parent)
                                      : origins_requested_by(&entry->parent, m->request_id);
}
