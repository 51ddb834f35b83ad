/* For tests that need real servers: an integration test is skipped, not failed, where there are none. */
#ifndef THOLE_INTEGRATION_H
#define THOLE_INTEGRATION_H
#include "servers.h"
#include "thole_cunit.h"
#include <stdlib.h>

enum { EXIT_SKIPPED = 77 };

static inline void skip_without(thole_status status, const thole_error *err)
{
    if (status == THOLE_OK)
        return;
    fprintf(stderr, "skipped: %s\n", err->text);
    exit(EXIT_SKIPPED);
}

static inline void skip_without_nats(void)
{
    char path[1024];
    thole_error err = {0};
    skip_without(server_find_nats(path, sizeof path, &err), &err);
}

static inline void skip_without_postgres(void)
{
    char path[1024];
    thole_error err = {0};
    skip_without(server_find_postgres(path, sizeof path, &err), &err);
}

/* Non-fatal; shows the error's text when it fails. */
#define CHECK_OK(expr, err)                                                                                  \
    do {                                                                                                     \
        thole_status check_ok_ = (expr);                                                                     \
        CU_ASSERT_EQUAL(check_ok_, THOLE_OK);                                                                \
        if (check_ok_ != THOLE_OK)                                                                           \
            fprintf(stderr, "\n  %s:%d %s\n    %d %s\n", __FILE__, __LINE__, #expr, (int)check_ok_,          \
                    (err)->text);                                                                            \
    } while (0)

/* A main that skips unless both servers are there. */
#define THOLE_INTEGRATION_MAIN(name, tests)                                                                  \
    int main(void)                                                                                           \
    {                                                                                                        \
        skip_without_nats();                                                                                 \
        skip_without_postgres();                                                                             \
        return thole_run_suite(name, tests, ARRAY_LEN(tests));                                               \
    }
#endif
