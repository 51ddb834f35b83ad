#include "row_rebuild.h"
#include "clock.h"
#include "memory.h"
#include "schema_next.h"
#include <stdlib.h>
#include <time.h>

enum {
    PASSES_MAX = 20,
    PASS_SHORT_MS = 500, /* later records are left to the owners */
    SWITCH_TRIES = 10,
    SWITCH_PAUSE_MS = 300,
};

struct rebuilding {
    struct row_checker_options options;
    struct postgres *next;
    struct row_checker *checker;
    uint64_t *watermarks; /* of the partitions; 0: no engine has opened it */
    struct row_rebuild *to;
};

/* Makes the partition's rows from its history after the former watermark; 0: from all of it. */
static thole_status make_partition(struct rebuilding *r, uint32_t p, thole_error *reterr)
{
    uint64_t const before = r->watermarks[p];
    THOLE_TRY(schema_next_begin(r->next, p, &r->watermarks[p], reterr));
    if (r->watermarks[p] == 0)
        return THOLE_OK;
    return before == 0 ? row_checker_partition(r->checker, p, &r->to->counts, reterr)
                       : row_checker_behind(r->checker, p, before, &r->to->counts, reterr);
}

static thole_status row_rebuild_pass(struct rebuilding *r, uint64_t *ret_ms, thole_error *reterr)
{
    uint64_t const begun_ms = clock_monotonic_ms();
    for (uint32_t p = 0; p < r->options.partitions; p++)
        THOLE_TRY(make_partition(r, p, reterr));
    *ret_ms = clock_monotonic_ms() - begun_ms;
    return THOLE_OK;
}

static thole_status catch_up(struct rebuilding *r, thole_error *reterr)
{
    uint64_t took_ms = UINT64_MAX;
    for (int i = 0; i < PASSES_MAX && took_ms > PASS_SHORT_MS; i++) {
        THOLE_TRY(row_rebuild_pass(r, &took_ms, reterr));
        r->to->passes++;
    }
    return THOLE_OK;
}

/* Tables that others use all the time are not locked at the first try. */
static thole_status take_its_place(struct rebuilding *r, thole_error *reterr)
{
    struct timespec const pause = clock_timespec(SWITCH_PAUSE_MS);
    thole_status status = THOLE_UNAVAILABLE;
    for (int i = 0; i < SWITCH_TRIES && status == THOLE_UNAVAILABLE; i++) {
        if (i > 0)
            (void)nanosleep(&pause, NULL);
        THOLE_TRY(catch_up(r, reterr));
        uint64_t const begun_ms = clock_monotonic_ms();
        status = schema_next_switch(r->next, reterr);
        r->to->switch_ms = clock_monotonic_ms() - begun_ms;
    }
    return status;
}

thole_status row_rebuild(const struct row_checker_options *options, const struct postgres_options *postgres,
                         struct row_rebuild *ret, thole_error *reterr)
{
    struct rebuilding r = {.options = *options, .to = ret};
    uint64_t took_ms = 0;
    *ret = (struct row_rebuild){.passes = 0};
    THOLE_TRY(schema_next_open(postgres, &r.next, reterr));
    r.options.pg = r.next;
    r.options.mend = r.options.alone = true;
    r.options.report = NULL;
    r.watermarks = memory_array(options->partitions, sizeof *r.watermarks);
    r.checker = row_checker_create(&r.options);
    thole_status status = row_rebuild_pass(&r, &took_ms, reterr);
    if (status == THOLE_OK)
        status = take_its_place(&r, reterr);
    if (status != THOLE_OK)
        schema_next_drop(r.next);
    row_checker_destroy(r.checker);
    free(r.watermarks);
    postgres_close(r.next);
    return status;
}
