#include "row_checker.h"
#include "clock.h"
#include "memory.h"
#include "message.h"
#include "row_history.h"
#include "row_store.h"
#include "subject.h"
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ROWS_AGE_MS = 10 * 1000, /* partition_options.row_age_ms, and the same for ever */
    ROWS_BYTES_MAX = 1024 * 1024 * 1024,
    CELL_BYTES_MAX = 4096,
    NAP_MS = 50,
    UNSETTLED_ROUNDS = 3,
    UNSETTLED_PAUSE_MS = 700,
    UNSETTLED_MAX = 10000,
    MENDED_AT_ONCE = 64, /* instances, while their owner is fenced */
    MEND_TRIES = 6,
};

struct row_checker {
    struct row_checker_options options;
    struct row_history history; /* of the partition at hand */
    struct id_set wrong, unsettled;
    struct id_set set_aside; /* of which rows are, before the partition was looked at; sorted */
    struct row_counts *counts;
    uint64_t due_us; /* for the rate: when the next instance may be compared */
};

struct row_checker *row_checker_create(const struct row_checker_options *options)
{
    struct row_checker *const checker = memory_new(sizeof *checker);
    assert((!options->mend && !options->retry) || options->key != NULL);
    checker->options = *options;
    return checker;
}

void row_checker_destroy(struct row_checker *checker)
{
    free(checker);
}

static void row_checker_sleep(uint64_t ms)
{
    struct timespec const pause = clock_timespec(ms);
    (void)nanosleep(&pause, NULL);
}

static bool may_go_on(const struct row_checker *checker, uint64_t done, uint64_t of)
{
    const struct row_checker_options *const options = &checker->options;
    return options->progress == NULL || options->progress(options->arg, checker->history.p, done, of);
}

/* Never more than the rate, also after an instance that took long. False: stopped. */
static bool keep_rate(struct row_checker *checker, uint64_t done, uint64_t of)
{
    uint64_t const rate = checker->options.rate;
    uint64_t now_ms = clock_monotonic_ms();
    bool on = may_go_on(checker, done, of);
    if (rate == 0)
        return on;
    if (checker->due_us < now_ms * 1000)
        checker->due_us = now_ms * 1000;
    checker->due_us += 1000000 / rate;
    for (; on && now_ms < checker->due_us / 1000; now_ms = clock_monotonic_ms()) {
        uint64_t const left_ms = checker->due_us / 1000 - now_ms;
        row_checker_sleep(left_ms < NAP_MS ? left_ms : NAP_MS);
        on = may_go_on(checker, done, of);
    }
    return on;
}

/* ---- reports ---- */

static void row_checker_put_number(struct buf *to, uint64_t number)
{
    buf_printf(to, "%" PRId64, (int64_t)number); /* as it is stored */
}

static void row_checker_put_text(struct buf *to, thole_slice text, bool bytes)
{
    size_t const shown_max = CELL_BYTES_MAX - 64, shown = text.len < shown_max ? text.len : shown_max;
    for (size_t i = 0; bytes && i < shown; i++)
        buf_printf(to, "%02x", text.ptr[i]);
    if (!bytes)
        buf_append(to, text.ptr, shown);
    if (shown < text.len)
        buf_printf(to, "... (%zu bytes)", text.len);
}

struct reporting {
    const struct row_checker *checker;
    const struct row_check *check;
    const struct row_difference *of;
    const struct row_shape *shape;
    struct row_report report;
    struct buf stored, expected;
};

static thole_status row_checker_give(struct reporting *r, const char *column)
{
    r->report.column = column;
    r->report.row_says = buf_cstr(&r->stored);
    r->report.history_says = buf_cstr(&r->expected);
    thole_status const status = r->checker->options.report(r->checker->options.arg, &r->report);
    buf_clear(&r->stored);
    buf_clear(&r->expected);
    return status;
}

static thole_status give_whole(struct reporting *r)
{
    buf_text(&r->stored, r->of->stored == NULL ? "there is no row" : "there is a row");
    buf_text(&r->expected, r->of->stored == NULL ? "there must be one" : "there must be none");
    return row_checker_give(r, NULL);
}

static thole_status give_columns(struct reporting *r)
{
    for (size_t i = 0; r->shape->numbers[i] != NULL; i++)
        if (row_number_differs(r->check, r->of, i)) {
            row_checker_put_number(&r->stored, r->of->stored->numbers[i]);
            row_checker_put_number(&r->expected, r->of->expected->row.numbers[i]);
            THOLE_TRY(row_checker_give(r, r->shape->numbers[i]));
        }
    for (size_t i = 0; r->shape->texts[i] != NULL; i++)
        if (row_text_differs(r->check, r->of, i)) {
            bool const bytes = (r->shape->bytes >> i & 1) != 0;
            row_checker_put_text(&r->stored, r->of->stored->texts[i], bytes);
            row_checker_put_text(&r->expected, r->of->expected->row.texts[i], bytes);
            THOLE_TRY(row_checker_give(r, r->shape->texts[i]));
        }
    return THOLE_OK;
}

static thole_status row_checker_report(const struct row_checker *checker, thole_slice instance,
                                       const struct row_check *check, const struct row_difference *of)
{
    const struct stored_row *const row = of->stored != NULL ? of->stored : &of->expected->row;
    const struct row_shape *const shape = &row_shapes[row->table];
    struct reporting r = {.checker = checker, .check = check, .of = of, .shape = shape};
    if (checker->options.report == NULL)
        return THOLE_OK;
    r.report = (struct row_report){.table = shape->table,
                                   .instance = instance,
                                   .execution = row->execution,
                                   .id = row->id,
                                   .id_name = shape->id};
    buf_init(&r.stored, CELL_BYTES_MAX * 4);
    buf_init(&r.expected, CELL_BYTES_MAX * 4);
    thole_status const status =
        of->stored == NULL || of->expected == NULL ? give_whole(&r) : give_columns(&r);
    buf_release(&r.stored);
    buf_release(&r.expected);
    return status;
}

/* ---- one instance ---- */

struct look {
    struct arena arena; /* the rows */
    struct row_check *check;
    const struct stored_row *rows;
    const struct row_difference *differences;
    size_t differences_len, rows_len;
    bool unreadable; /* the history is unreadable: nothing was compared */
};

static void look_release(struct look *look)
{
    row_check_destroy(look->check);
    arena_release(&look->arena);
}

static thole_status row_checker_read_rows(struct row_checker *checker, thole_slice instance, bool exact,
                                          struct look *look, thole_error *reterr)
{
    struct row_partition partition = {.watermark = 0};
    struct row_check_options options = {.instance = instance,
                                        .partition = checker->history.p,
                                        .key = checker->options.key,
                                        .rows_age_ms = ROWS_AGE_MS};
    THOLE_TRY(row_store_read(checker->options.pg, instance, checker->history.p, &look->arena, &partition,
                             &options.rows, &options.rows_len, reterr));
    options.watermark = exact ? UINT64_MAX : partition.watermark;
    look->check = row_check_create(&options);
    look->rows = options.rows;
    look->rows_len = options.rows_len;
    return THOLE_OK;
}

/* The order is that of row_check.h. A result that is neither in the inbox nor in the history, which is read
 * later, does not exist. @p results: look for those, too. Released by the caller in any case. */
static thole_status row_checker_look_at(struct row_checker *checker, thole_slice instance, bool results,
                                        bool exact, struct look *look, thole_error *reterr)
{
    struct waiting_result *waiting = NULL;
    size_t waiting_len = 0;
    *look = (struct look){.check = NULL};
    arena_init(&look->arena, ROWS_BYTES_MAX);
    THOLE_TRY(row_checker_read_rows(checker, instance, exact, look, reterr));
    if (results && id_check(instance, NULL) == THOLE_OK)
        THOLE_TRY(row_history_results(&checker->history, instance, &waiting, &waiting_len, reterr));
    thole_status status = id_check(instance, NULL) != THOLE_OK
                              ? THOLE_OK /* no history can have that id */
                              : row_history_read(&checker->history, instance, look->check, reterr);
    look->unreadable = status == THOLE_CORRUPT;
    for (size_t i = 0; i < waiting_len && status == THOLE_OK; i++)
        row_check_result(look->check, waiting[i].execution, waiting[i].activity_id, waiting[i].try_number);
    free(waiting);
    if (status == THOLE_OK)
        row_check_end(look->check, &look->differences, &look->differences_len);
    return look->unreadable ? THOLE_OK : status;
}

/* A difference is one that is found twice, the second time with what waits in the inbox. */
static thole_status look_twice(struct row_checker *checker, thole_slice instance, struct look *look,
                               thole_error *reterr)
{
    THOLE_TRY(row_checker_look_at(checker, instance, false, false, look, reterr));
    if (look->differences_len == 0)
        return THOLE_OK;
    THOLE_TRY(row_history_owner(&checker->history, reterr)); /* the owner may have changed by now */
    look_release(look);
    return row_checker_look_at(checker, instance, true, false, look, reterr);
}

static thole_status row_checker_check(struct row_checker *checker, thole_slice instance,
                                      const struct look *look)
{
    thole_status status = THOLE_OK;
    if (look->unreadable) {
        checker->counts->unreadable++;
        return THOLE_OK;
    }
    checker->counts->instances++;
    checker->counts->rows += look->rows_len;
    checker->counts->wrong += look->differences_len;
    for (size_t i = 0; i < look->differences_len && status == THOLE_OK; i++)
        status = row_checker_report(checker, instance, look->check, &look->differences[i]);
    if (status == THOLE_OK && look->differences_len > 0)
        return id_set_add(&checker->wrong, instance);
    if (status == THOLE_OK && !row_check_settled(look->check))
        return id_set_add(&checker->unsettled, instance);
    return status;
}

static thole_status check_one(struct row_checker *checker, thole_slice instance, thole_error *reterr)
{
    struct look look;
    thole_status status = look_twice(checker, instance, &look, reterr);
    if (status == THOLE_OK)
        status = row_checker_check(checker, instance, &look);
    look_release(&look);
    return status;
}

/* ---- mending ---- */

/* Some instances: what is wrong with each is found out first, from Postgres and the streams. Then the owner
 * is fenced, and those whose rows are still the same are mended: locks are held while Postgres alone is
 * asked. */
struct mending {
    struct row_checker *checker;
    const thole_slice *ids;
    size_t n;
    struct look looks[MENDED_AT_ONCE]; /* of those that are not done */
    bool done[MENDED_AT_ONCE], looked[MENDED_AT_ONCE], mended[MENDED_AT_ONCE];
    uint64_t rows, refused;
};

static bool same_row(const struct stored_row *a, const struct stored_row *b)
{
    bool same = a->table == b->table && a->execution == b->execution && a->id == b->id &&
                a->touched == b->touched && memcmp(a->numbers, b->numbers, sizeof a->numbers) == 0;
    for (size_t i = 0; i < ROW_TEXTS_MAX && same; i++)
        same = thole_slice_equal(a->texts[i], b->texts[i]);
    return same;
}

static thole_status is_unchanged(struct row_checker *checker, thole_slice instance, const struct look *look,
                                 bool *ret, thole_error *reterr)
{
    struct arena arena;
    struct row_partition partition;
    struct stored_row *rows = NULL;
    size_t len = 0;
    arena_init(&arena, ROWS_BYTES_MAX);
    thole_status const status = row_store_read(checker->options.pg, instance, checker->history.p, &arena,
                                               &partition, &rows, &len, reterr);
    *ret = status == THOLE_OK && len == look->rows_len;
    for (size_t i = 0; i < len && *ret; i++)
        *ret = same_row(&rows[i], &look->rows[i]);
    arena_release(&arena);
    return status;
}

static thole_status look_first(struct mending *m, thole_error *reterr)
{
    THOLE_TRY(row_history_owner(&m->checker->history, reterr));
    for (size_t i = 0; i < m->n; i++) {
        if (m->done[i])
            continue;
        m->looked[i] = true;
        THOLE_TRY(row_checker_look_at(m->checker, m->ids[i], true, true, &m->looks[i], reterr));
        m->checker->counts->unreadable += m->looks[i].unreadable && m->checker->options.alone;
        /* a row that is right by now is no longer to be set aside */
        m->done[i] = m->looks[i].unreadable ||
                     (m->looks[i].differences_len == 0 && !id_set_has(&m->checker->set_aside, m->ids[i]));
    }
    return THOLE_OK;
}

/* After the fence. */
static thole_status write_rows(struct mending *m, thole_error *reterr)
{
    m->rows = m->refused = 0;
    for (size_t i = 0; i < m->n; i++) {
        size_t refused = 0;
        const struct look *const look = &m->looks[i];
        m->mended[i] = false;
        if (m->done[i])
            continue;
        THOLE_TRY(is_unchanged(m->checker, m->ids[i], look, &m->mended[i], reterr));
        if (!m->mended[i])
            continue;
        THOLE_TRY(row_store_mend(m->checker->options.pg, m->ids[i], m->checker->history.p, look->differences,
                                 look->differences_len, &refused, reterr));
        m->rows += look->differences_len - refused;
        m->refused += refused;
    }
    return THOLE_OK;
}

static bool are_done(const struct mending *m)
{
    bool done = true;
    for (size_t i = 0; i < m->n; i++)
        done &= m->done[i];
    return done;
}

static thole_status mend_fenced(struct mending *m, thole_error *reterr)
{
    struct postgres *const pg = m->checker->options.pg;
    THOLE_TRY(row_store_fence(pg, m->checker->history.p, reterr));
    thole_status status = write_rows(m, reterr);
    if (status == THOLE_OK)
        status = row_store_commit(pg, reterr);
    else
        row_store_rollback(pg);
    if (status != THOLE_OK)
        return status;
    m->checker->counts->mended += m->rows;
    m->checker->counts->refused += m->refused;
    for (size_t i = 0; i < m->n; i++)
        m->done[i] |= m->mended[i];
    return THOLE_OK;
}

static thole_status mend_try(struct mending *m, thole_error *reterr)
{
    thole_status status = look_first(m, reterr);
    if (status == THOLE_OK && !are_done(m))
        status = mend_fenced(m, reterr);
    for (size_t i = 0; i < m->n; i++) {
        if (m->looked[i])
            look_release(&m->looks[i]);
        m->looked[i] = false;
    }
    return status;
}

/* Repairs that were rolled back, or perhaps were not, are tried again: the rows are then right already. So
 * are rows that have changed in between; rows that change all the time stay as they are. */
static thole_status mend_some(struct row_checker *checker, const thole_slice *ids, size_t n,
                              thole_error *reterr)
{
    struct mending *const m = memory_new(sizeof *m);
    thole_status status = THOLE_OK;
    m->checker = checker;
    m->ids = ids;
    m->n = n;
    for (int i = 0; i < MEND_TRIES && !are_done(m) && (status == THOLE_OK || status == THOLE_UNAVAILABLE);
         i++) {
        row_checker_sleep(i > 0 ? (uint64_t)NAP_MS << i : 0);
        status = mend_try(m, reterr);
    }
    free(m);
    return status;
}

static thole_status row_checker_mend(struct row_checker *checker, const struct id_set *ids,
                                     thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (size_t at = 0; at < ids->len && status == THOLE_OK; at += MENDED_AT_ONCE) {
        size_t const n = ids->len - at < MENDED_AT_ONCE ? ids->len - at : MENDED_AT_ONCE;
        status = mend_some(checker, ids->ids + at, n, reterr);
    }
    return status;
}

/* ---- a partition ---- */

static thole_status add_id(void *arg, thole_slice instance)
{
    return id_set_add(arg, instance);
}

/* Rows that are being made again say nothing. */
static thole_status wait_complete(struct row_checker *checker, thole_error *reterr)
{
    uint64_t const until_ms = clock_monotonic_ms() + checker->options.settle_ms;
    struct row_partition partition;
    for (;;) {
        THOLE_TRY(row_store_partition(checker->options.pg, checker->history.p, &partition, reterr));
        if (partition.complete && partition.watermark > 0)
            return THOLE_OK;
        if (clock_monotonic_ms() >= until_ms)
            return thole_fail(reterr, THOLE_UNAVAILABLE,
                              "the rows of partition %" PRIu32 " are not complete: %s", checker->history.p,
                              partition.epoch == 0 ? "no engine has opened it on this database"
                                                   : "an engine is making them again, or none is running");
        if (!may_go_on(checker, 0, 0))
            return THOLE_CANCELLED;
        row_checker_sleep(NAP_MS);
    }
}

static thole_status check_ids(struct row_checker *checker, const struct id_set *ids, thole_error *reterr)
{
    for (size_t i = 0; i < ids->len; i++) {
        if (!keep_rate(checker, i, ids->len))
            return thole_fail(reterr, THOLE_CANCELLED, "stopped");
        THOLE_TRY(check_one(checker, ids->ids[i], reterr));
    }
    return THOLE_OK;
}

/* Instances that had records which the rows did not have yet, once more. */
static thole_status check_unsettled(struct row_checker *checker, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (int i = 0; i < UNSETTLED_ROUNDS && status == THOLE_OK && checker->unsettled.len > 0 &&
                    checker->unsettled.len < UNSETTLED_MAX;
         i++) {
        struct id_set again = checker->unsettled;
        id_set_init(&checker->unsettled);
        row_checker_sleep(UNSETTLED_PAUSE_MS);
        struct row_counts const before = *checker->counts;
        status = check_ids(checker, &again, reterr);
        checker->counts->instances = before.instances; /* they are counted already */
        checker->counts->rows = before.rows;
        id_set_release(&again);
    }
    checker->counts->unsettled += checker->unsettled.len;
    return status;
}

/* Ids of the partition, and apart those of rows that only say they are of it. */
static thole_status row_checker_part(const struct row_checker *checker, const struct id_set *all,
                                     struct id_set *own, struct id_set *strays)
{
    for (size_t i = 0; i < all->len; i++) {
        bool const is_own = subject_partition(all->ids[i], checker->options.partitions) == checker->history.p;
        THOLE_TRY(id_set_add(is_own ? own : strays, all->ids[i]));
    }
    return THOLE_OK;
}

/* No other program writes these rows: they are written as the histories say, and not compared first. */
static thole_status make_rows(struct row_checker *checker, const struct id_set *ids, thole_error *reterr)
{
    for (size_t at = 0; at < ids->len; at += MENDED_AT_ONCE) {
        size_t const n = ids->len - at < MENDED_AT_ONCE ? ids->len - at : MENDED_AT_ONCE;
        for (size_t i = 0; i < n; i++)
            if (!keep_rate(checker, at + i, ids->len))
                return thole_fail(reterr, THOLE_CANCELLED, "stopped");
        THOLE_TRY(mend_some(checker, ids->ids + at, n, reterr));
        checker->counts->instances += n;
    }
    return THOLE_OK;
}

/* Those whose rows are right by now, too. */
static thole_status add_set_aside(struct row_checker *checker)
{
    for (size_t i = 0; i < checker->set_aside.len; i++)
        THOLE_TRY(id_set_add(&checker->wrong, checker->set_aside.ids[i]));
    return THOLE_OK;
}

/* A user who may only read has compared the rows. */
static thole_status row_checker_try_again(struct row_checker *checker, thole_error *reterr)
{
    thole_error err = {.status = THOLE_OK};
    thole_status const status = row_checker_mend(checker, &checker->set_aside, &err);
    checker->counts->denied |= status == THOLE_DENIED;
    if (status == THOLE_OK || status == THOLE_DENIED)
        return THOLE_OK;
    return thole_fail(reterr, status, "%s", err.text);
}

static thole_status row_checker_check_own(struct row_checker *checker, const struct id_set *ids,
                                          thole_error *reterr)
{
    if (ids->len == 0)
        return THOLE_OK;
    if (checker->options.alone)
        return make_rows(checker, ids, reterr);
    THOLE_TRY(wait_complete(checker, reterr));
    THOLE_TRY(check_ids(checker, ids, reterr));
    THOLE_TRY(check_unsettled(checker, reterr));
    if (checker->options.mend)
        THOLE_TRY(add_set_aside(checker));
    id_set_sort(&checker->wrong);
    if (checker->options.mend)
        return row_checker_mend(checker, &checker->wrong, reterr);
    return checker->options.retry ? row_checker_try_again(checker, reterr) : THOLE_OK;
}

static thole_status row_checker_gather(struct row_checker *checker, struct id_set *own, struct id_set *strays,
                                       thole_error *reterr)
{
    struct id_set all;
    id_set_init(&all);
    thole_status status = row_history_ids(&checker->history, &all, reterr);
    if (status == THOLE_OK)
        status = row_store_ids(checker->options.pg, checker->history.p, add_id, &all, reterr);
    for (size_t i = 0; i < checker->set_aside.len && status == THOLE_OK; i++)
        status = id_set_add(&all, checker->set_aside.ids[i]);
    id_set_sort(&all);
    if (status == THOLE_OK)
        status = row_checker_part(checker, &all, own, strays);
    id_set_release(&all);
    return status;
}

static void row_checker_release(struct row_checker *checker)
{
    row_history_release(&checker->history);
    id_set_release(&checker->wrong);
    id_set_release(&checker->unsettled);
    id_set_release(&checker->set_aside);
    checker->counts = NULL;
}

static thole_status row_checker_open(struct row_checker *checker, uint32_t p, struct row_counts *counts,
                                     thole_error *reterr)
{
    checker->counts = counts;
    id_set_init(&checker->wrong);
    id_set_init(&checker->unsettled);
    id_set_init(&checker->set_aside);
    THOLE_TRY(
        row_history_open(&checker->history, checker->options.connection, checker->options.ns, p, reterr));
    THOLE_TRY(row_store_set_aside(checker->options.pg, p, add_id, &checker->set_aside, reterr));
    id_set_sort(&checker->set_aside);
    counts->set_aside += checker->set_aside.len;
    return THOLE_OK;
}

/* Of an instance that has a history its own partition is told. */
static thole_status check_stray(struct row_checker *checker, thole_slice instance, thole_error *reterr)
{
    struct look look;
    thole_status status = row_checker_look_at(checker, instance, true, false, &look, reterr);
    bool const is_its =
        status == THOLE_OK && !look.unreadable && expected_rows_last(row_check_expected(look.check)) == 0;
    if (is_its)
        status = row_checker_check(checker, instance, &look);
    look_release(&look);
    if (status == THOLE_OK && is_its && checker->options.mend)
        status = row_checker_mend(checker, &checker->wrong, reterr);
    return status;
}

static thole_status check_strays(struct row_checker *checker, const struct id_set *strays,
                                 struct row_counts *counts, thole_error *reterr)
{
    thole_status status = THOLE_OK;
    for (size_t i = 0; i < strays->len && status == THOLE_OK; i++) {
        uint32_t const p = subject_partition(strays->ids[i], checker->options.partitions);
        status = row_checker_open(checker, p, counts, reterr);
        if (status == THOLE_OK)
            status = check_stray(checker, strays->ids[i], reterr);
        row_checker_release(checker);
    }
    return status;
}

thole_status row_checker_partition(struct row_checker *checker, uint32_t p, struct row_counts *counts,
                                   thole_error *reterr)
{
    struct id_set own, strays;
    id_set_init(&own);
    id_set_init(&strays);
    thole_status status = row_checker_open(checker, p, counts, reterr);
    if (status == THOLE_OK)
        status = row_checker_gather(checker, &own, &strays, reterr);
    if (status == THOLE_OK)
        status = row_checker_check_own(checker, &own, reterr);
    row_checker_release(checker);
    if (status == THOLE_OK)
        status = check_strays(checker, &strays, counts, reterr);
    id_set_release(&own);
    id_set_release(&strays);
    return status;
}

thole_status row_checker_behind(struct row_checker *checker, uint32_t p, uint64_t sequence,
                                struct row_counts *counts, thole_error *reterr)
{
    struct id_set ids;
    id_set_init(&ids);
    thole_status status = row_checker_open(checker, p, counts, reterr);
    if (status == THOLE_OK)
        status = row_history_ids_behind(&checker->history, sequence, &ids, reterr);
    id_set_sort(&ids);
    if (status == THOLE_OK)
        status = row_checker_check_own(checker, &ids, reterr);
    row_checker_release(checker);
    id_set_release(&ids);
    return status;
}

thole_status row_checker_stray(struct row_checker *checker, struct row_counts *counts, thole_error *reterr)
{
    struct id_set strays;
    id_set_init(&strays);
    thole_status status =
        row_store_stray(checker->options.pg, checker->options.partitions, add_id, &strays, reterr);
    id_set_sort(&strays);
    if (status == THOLE_OK)
        status = check_strays(checker, &strays, counts, reterr);
    id_set_release(&strays);
    return status;
}
