#include "audit_stream.h"
#include "api.h"
#include "jscan.h"
#include "link.h"
#include "subject.h"
#include "topology_spec.h"
#include <stdio.h>

enum { TOKEN_WHAT = 4 };

thole_status audit_stream_ensure(struct connection *connection, const char *ns, uint32_t replicas,
                                 thole_error *reterr)
{
    struct stream_spec spec = {.purpose = "checkpoints in it must stay",
                               .retention = "limits",
                               .replicas = replicas,
                               .subjects_len = 1,
                               .deny_purge = true,
                               .deny_delete = true};
    struct buf name;
    buf_init(&name, sizeof spec.name);
    thole_status status = stream_name(&name, ns, "AUDIT", -1, reterr);
    (void)snprintf(spec.name, sizeof spec.name, "%s", buf_cstr(&name));
    (void)snprintf(spec.subjects[0], sizeof spec.subjects[0], "thole.%s.audit.>", ns);
    if (status == THOLE_OK)
        status = spec_ensure(connection, &spec, reterr);
    buf_release(&name);
    return status;
}

static thole_status read_all(struct connection *connection, const char *stream, const char *filter,
                             stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    struct stream_bounds bounds;
    thole_status const status = stream_bounds(connection, stream, &bounds, reterr);
    if (status == THOLE_NOT_FOUND)
        return THOLE_OK;
    if (status != THOLE_OK || bounds.last == 0)
        return status;
    return stream_read_deliveries(connection, stream, filter, 1, bounds.last, each, arg, reterr);
}

thole_status audit_stream_read(struct connection *connection, const char *ns, uint32_t p,
                               stream_delivery_fn *each, void *arg, thole_error *reterr)
{
    struct buf stream, filter;
    buf_init(&stream, STREAM_NAME_BYTES_MAX);
    buf_init(&filter, SUBJECT_BYTES_MAX);
    thole_status status = stream_name(&stream, ns, "AUDIT", -1, reterr);
    if (status == THOLE_OK)
        status = subject_audit(&filter, ns, p, NULL, reterr);
    if (status == THOLE_OK)
        status = read_all(connection, buf_cstr(&stream), buf_cstr(&filter), each, arg, reterr);
    buf_release(&stream);
    buf_release(&filter);
    return status;
}

bool audit_stream_is(thole_slice subject, const char *what)
{
    return thole_slice_equal(subject_nth(subject, TOKEN_WHAT), thole_slice_from(what));
}

static thole_status judge(thole_slice answer, const char *subject, thole_error *reterr)
{
    thole_slice error, sequence;
    uint64_t stored;
    if (json_find(answer, "error", &error))
        return thole_fail(reterr, THOLE_UNAVAILABLE, "publish to %s: the server says: %.*s", subject,
                          THOLE_FMT(error));
    if (json_find(answer, "seq", &sequence) && json_uint(sequence, &stored))
        return THOLE_OK;
    return thole_fail(reterr, THOLE_UNAVAILABLE, "publish to %s: nothing says that it is stored", subject);
}

thole_status audit_stream_publish(struct connection *connection, const char *ns, uint32_t p, const char *what,
                                  thole_slice body, thole_error *reterr)
{
    struct buf subject, answer;
    buf_init(&subject, SUBJECT_BYTES_MAX);
    buf_init(&answer, API_ANSWER_MAX);
    thole_status status = subject_audit(&subject, ns, p, what, reterr);
    if (status == THOLE_OK)
        status = connection_request_with(connection, buf_cstr(&subject), NULL, 0, body, &answer, reterr);
    if (status == THOLE_OK)
        status = judge(buf_bytes(&answer), buf_cstr(&subject), reterr);
    buf_release(&subject);
    buf_release(&answer);
    return status;
}
