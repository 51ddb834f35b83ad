#include "wrap_submitted.h"
#include "thole_cunit.h"

struct submitted submitted;

void __wrap_request_submit(struct request *request)
{
    CU_ASSERT_FATAL(submitted.len < SUBMITTED_MAX);
    submitted.requests[submitted.len++] = request;
}

void __wrap_request_load(struct request *request, size_t bytes)
{
    request->load_bytes = bytes;
    __wrap_request_submit(request);
}

struct request *submitted_last(enum request_kind kind)
{
    CU_ASSERT_FATAL(submitted.len > 0);
    struct request *const request = submitted.requests[submitted.len - 1];
    CU_ASSERT_EQUAL(request->kind, kind);
    return request;
}

void submitted_clear(void)
{
    while (submitted.len > 0)
        request_destroy(submitted.requests[--submitted.len]);
}
