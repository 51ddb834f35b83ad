/* Rows as they are stored, read and mended: see row_store.h. */
#include "row_store.h"
#include "memory.h"
#include "postgres_call.h"
#include "projector_parts.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_ROWS = 5000, FIRST_TABLE = 1 /* place of the rows in row_store_read()'s call */ };

/* ---- reading ---- */

static struct row_partition row_store_partition_of(const struct postgres *pg)
{
    if (call_rows(pg, 0) == 0)
        return (struct row_partition){.watermark = 0};
    return (struct row_partition){call_cell_int8(pg, 0, 0, 0), call_cell_int8(pg, 0, 0, 1),
                                  call_cell_int8(pg, 0, 0, 2) == 1};
}

thole_status row_store_partition(struct postgres *pg, uint32_t p, struct row_partition *ret,
                                 thole_error *reterr)
{
    call_begin(pg, "reading a partition's watermark");
    call_int4(pg, p);
    call_send(pg, STATEMENT_ROWS_PARTITION);
    THOLE_TRY(call_run(pg, reterr));
    *ret = row_store_partition_of(pg);
    return THOLE_OK;
}

static thole_status give_ids(const struct postgres *pg, row_id_fn *each, void *arg)
{
    for (size_t row = 0; row < call_rows(pg, 0); row++)
        THOLE_TRY(each(arg, call_cell_text(pg, 0, row, 0)));
    return THOLE_OK;
}

thole_status row_store_ids(struct postgres *pg, uint32_t p, row_id_fn *each, void *arg, thole_error *reterr)
{
    struct buf after;
    thole_status status = THOLE_OK;
    buf_init(&after, CALL_BYTES_MAX);
    for (bool more = true; more && status == THOLE_OK;) {
        call_begin(pg, "reading which instances have rows");
        call_int4(pg, p);
        call_text(pg, buf_bytes(&after));
        call_int8(pg, PAGE_ROWS);
        call_send(pg, STATEMENT_ROWS_IDS);
        status = call_run(pg, reterr);
        if (status != THOLE_OK)
            break;
        size_t const rows = call_rows(pg, 0);
        more = rows == PAGE_ROWS;
        buf_clear(&after);
        if (more)
            buf_slice(&after, call_cell_text(pg, 0, rows - 1, 0));
        status = buf_status(&after);
        if (status == THOLE_OK)
            status = give_ids(pg, each, arg);
    }
    buf_release(&after);
    return status;
}

thole_status row_store_stray(struct postgres *pg, uint32_t partitions, row_id_fn *each, void *arg,
                             thole_error *reterr)
{
    call_begin(pg, "reading which rows are of no partition");
    call_int4(pg, partitions);
    call_send(pg, STATEMENT_ROWS_STRAY);
    THOLE_TRY(call_run(pg, reterr));
    return give_ids(pg, each, arg);
}

thole_status row_store_set_aside(struct postgres *pg, uint32_t p, row_id_fn *each, void *arg,
                                 thole_error *reterr)
{
    call_begin(pg, "reading of which instances rows are set aside");
    call_int4(pg, p);
    call_send(pg, STATEMENT_ROWS_SET_ASIDE);
    THOLE_TRY(call_run(pg, reterr));
    return give_ids(pg, each, arg);
}

static const enum statement reads[ROW_TABLES] = {[ROWS_ACTIVITIES] = STATEMENT_ROWS_ACTIVITIES,
                                                 [ROWS_TIMERS] = STATEMENT_ROWS_TIMERS,
                                                 [ROWS_QUARANTINE] = STATEMENT_ROWS_QUARANTINE,
                                                 [ROWS_EXECUTIONS] = STATEMENT_ROWS_EXECUTIONS,
                                                 [ROWS_INSTANCES] = STATEMENT_ROWS_INSTANCES};

static thole_status read_row(const struct postgres *pg, enum row_table table, size_t row, struct arena *arena,
                             struct stored_row *ret)
{
    const struct row_shape *const shape = &row_shapes[table];
    size_t const i = FIRST_TABLE + table;
    size_t column = 0;
    *ret = (struct stored_row){.table = table};
    ret->execution = call_cell_int8(pg, i, row, column++);
    ret->id = call_cell_int8(pg, i, row, column++);
    for (size_t k = 0; shape->numbers[k] != NULL; k++)
        ret->numbers[k] = call_cell_int8(pg, i, row, column++);
    for (size_t k = 0; shape->texts[k] != NULL; k++) {
        thole_slice const cell = call_cell_text(pg, i, row, column++);
        if (cell.len > 0)
            THOLE_TRY(arena_dup(arena, cell, &ret->texts[k]));
    }
    ret->touched = table == ROWS_ACTIVITIES && call_cell_int8(pg, i, row, column) == 1;
    return THOLE_OK;
}

thole_status row_store_read(struct postgres *pg, thole_slice instance, uint32_t p, struct arena *arena,
                            struct row_partition *ret_partition, struct stored_row **ret, size_t *ret_len,
                            thole_error *reterr)
{
    size_t len = 0, total = 0;
    call_begin(pg, "reading the rows of an instance");
    call_int4(pg, p);
    call_send(pg, STATEMENT_ROWS_PARTITION); /* first: the rows are not older */
    for (size_t table = 0; table < ROW_TABLES; table++) {
        call_text(pg, instance);
        call_send(pg, reads[table]);
    }
    THOLE_TRY(call_run(pg, reterr));
    *ret_partition = row_store_partition_of(pg);
    for (size_t table = 0; table < ROW_TABLES; table++)
        total += call_rows(pg, FIRST_TABLE + table);
    struct stored_row *const rows = arena_array(arena, total, sizeof *rows);
    if (rows == NULL)
        return thole_fail(reterr, arena_status(arena), "no room for the %zu rows of one instance", total);
    for (size_t table = 0; table < ROW_TABLES; table++)
        for (size_t row = 0; row < call_rows(pg, FIRST_TABLE + table); row++)
            if (read_row(pg, (enum row_table)table, row, arena, &rows[len++]) != THOLE_OK)
                return thole_fail(reterr, arena_status(arena), "no room for the rows of one instance");
    *ret = rows;
    *ret_len = len;
    return THOLE_OK;
}

/* ---- mending ---- */

/* Rows of one table, in columns for the statements. */
struct mended {
    thole_slice instance;
    uint64_t execution, id;
    uint64_t numbers[ROW_NUMBERS_MAX];
    thole_slice texts[ROW_TEXTS_MAX];
    uint32_t p, number_32[ROW_NUMBERS_MAX]; /* copies of the numbers for columns of 32 bits */
    uint64_t scheduled_ms;
    bool wrong, yes; /* wrong: no worker can have that claim; yes: is true */
};

struct mending {
    struct postgres *pg;
    thole_slice instance;
    uint32_t p;
    const struct row_difference *differences;
    size_t n;
    struct mended *rows; /* of the statement at hand */
    size_t len;
};

enum wanted { TO_REMOVE, TO_ADD, TO_CHANGE };

/* Rows of activities are changed where they are, since they hold claims; others are removed and added. */
static bool row_store_is_wanted(const struct row_difference *of, enum row_table table, enum wanted wanted)
{
    enum row_table const its = of->stored != NULL ? of->stored->table : of->expected->row.table;
    bool const both = of->stored != NULL && of->expected != NULL;
    if (its != table)
        return false;
    if (table == ROWS_ACTIVITIES && both)
        return wanted == TO_CHANGE;
    return wanted == TO_REMOVE ? of->stored != NULL : wanted == TO_ADD && of->expected != NULL;
}

/* A column that does not hold it refuses it. */
static uint32_t of_32_bits(uint64_t number)
{
    return number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
}

static void row_store_collect(struct mending *m, enum row_table table, enum wanted wanted)
{
    m->len = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct row_difference *const of = &m->differences[i];
        if (!row_store_is_wanted(of, table, wanted))
            continue;
        const struct stored_row *const row = wanted == TO_REMOVE ? of->stored : &of->expected->row;
        struct mended *const to = &m->rows[m->len++];
        *to = (struct mended){.instance = m->instance,
                              .execution = row->execution,
                              .id = row->id,
                              .p = m->p,
                              .wrong = of->stored != NULL && of->stored->texts[ACTIVITY_CLAIM].len > 0,
                              .yes = true};
        memcpy(to->numbers, row->numbers, sizeof to->numbers);
        memcpy(to->texts, row->texts, sizeof to->texts);
        for (size_t k = 0; k < ROW_NUMBERS_MAX; k++)
            to->number_32[k] = of_32_bits(row->numbers[k]);
        if (wanted != TO_REMOVE)
            to->scheduled_ms = expected_rows_scheduled_ms(of->expected);
    }
}

static void row_store_send_keys(const struct mending *m)
{
    const size_t stride = sizeof *m->rows;
    call_text_array(m->pg, &m->rows->instance, stride, m->len);
    call_int8_array(m->pg, &m->rows->execution, stride, m->len);
    call_int8_array(m->pg, &m->rows->id, stride, m->len);
}

static void remove_rows(struct mending *m, enum row_table table, enum statement statement)
{
    uint32_t const any_try = INT32_MAX, no_place = 0;
    row_store_collect(m, table, TO_REMOVE);
    if (m->len == 0)
        return;
    row_store_send_keys(m);
    if (table == ROWS_ACTIVITIES) {
        for (size_t i = 0; i < m->len; i++) {
            m->rows[i].number_32[0] = any_try;
            m->rows[i].number_32[1] = no_place;
        }
        call_int4_array(m->pg, &m->rows->number_32[0], sizeof *m->rows, m->len);
        call_int4_array(m->pg, &m->rows->number_32[1], sizeof *m->rows, m->len);
    }
    call_send(m->pg, statement);
}

static void remove_executions(struct mending *m)
{
    row_store_collect(m, ROWS_EXECUTIONS, TO_REMOVE);
    if (m->len == 0)
        return;
    call_text_array(m->pg, &m->rows->instance, sizeof *m->rows, m->len);
    call_int8_array(m->pg, &m->rows->execution, sizeof *m->rows, m->len);
    call_send(m->pg, STATEMENT_ROWS_EXECUTIONS_REMOVE);
}

static void remove_instance(struct mending *m)
{
    row_store_collect(m, ROWS_INSTANCES, TO_REMOVE);
    if (m->len == 0)
        return;
    m->rows->numbers[INSTANCE_SEQ] = INT64_MAX; /* whatever it says */
    call_text_array(m->pg, &m->rows->instance, sizeof *m->rows, m->len);
    call_int8_array(m->pg, &m->rows->numbers[INSTANCE_SEQ], sizeof *m->rows, m->len);
    call_send(m->pg, STATEMENT_INSTANCES_DELETED);
}

static void write_activities(struct mending *m, enum wanted wanted, enum statement statement)
{
    const size_t stride = sizeof *m->rows;
    row_store_collect(m, ROWS_ACTIVITIES, wanted);
    if (m->len == 0)
        return;
    row_store_send_keys(m);
    call_text_array(m->pg, &m->rows->texts[ACTIVITY_QUEUE], stride, m->len);
    call_text_array(m->pg, &m->rows->texts[ACTIVITY_NAME], stride, m->len);
    call_int4_array(m->pg, &m->rows->number_32[ACTIVITY_TRY], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[ACTIVITY_TIMEOUT_MS], stride, m->len);
    call_bytes_array(m->pg, &m->rows->texts[ACTIVITY_DETAILS], stride, m->len);
    call_bytes_array(m->pg, &m->rows->texts[ACTIVITY_DIGEST], stride, m->len);
    call_int4_array(m->pg, &m->rows->p, stride, m->len);
    call_int8_array(m->pg, &m->rows->scheduled_ms, stride, m->len);
    if (wanted == TO_CHANGE)
        call_bool_array(m->pg, &m->rows->wrong, stride, m->len);
    call_send(m->pg, statement);
}

static void add_timers(struct mending *m)
{
    row_store_collect(m, ROWS_TIMERS, TO_ADD);
    if (m->len == 0)
        return;
    row_store_send_keys(m);
    call_int8_array(m->pg, &m->rows->numbers[TIMER_DUE_MS], sizeof *m->rows, m->len);
    call_int4_array(m->pg, &m->rows->p, sizeof *m->rows, m->len);
    call_send(m->pg, STATEMENT_TIMERS_ADD);
}

static void add_quarantine(struct mending *m)
{
    const size_t stride = sizeof *m->rows;
    row_store_collect(m, ROWS_QUARANTINE, TO_ADD);
    if (m->len == 0)
        return;
    row_store_send_keys(m);
    call_text_array(m->pg, &m->rows->texts[QUARANTINE_QUEUE], stride, m->len);
    call_text_array(m->pg, &m->rows->texts[QUARANTINE_NAME], stride, m->len);
    call_int4_array(m->pg, &m->rows->number_32[QUARANTINE_TRY], stride, m->len);
    call_int4_array(m->pg, &m->rows->number_32[QUARANTINE_LOST], stride, m->len);
    call_text_array(m->pg, &m->rows->texts[QUARANTINE_WORKER], stride, m->len);
    call_text_array(m->pg, &m->rows->texts[QUARANTINE_REASON], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[QUARANTINE_SINCE_MS], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[QUARANTINE_UNTIL_MS], stride, m->len);
    call_int4_array(m->pg, &m->rows->p, stride, m->len);
    call_send(m->pg, STATEMENT_QUARANTINE_ADD);
}

static void row_store_add_instance(struct mending *m)
{
    const size_t stride = sizeof *m->rows;
    row_store_collect(m, ROWS_INSTANCES, TO_ADD);
    if (m->len == 0)
        return;
    const struct mended *const rows = m->rows;
    call_int4_array(m->pg, &rows->p, stride, m->len);
    call_text_array(m->pg, &rows->instance, stride, m->len);
    call_text_array(m->pg, &rows->texts[INSTANCE_ORCHESTRATION], stride, m->len);
    call_int8_array(m->pg, &rows->numbers[INSTANCE_EXECUTION], stride, m->len);
    call_int4_array(m->pg, &rows->number_32[INSTANCE_STATUS], stride, m->len);
    call_int8_array(m->pg, &rows->numbers[INSTANCE_CREATED_MS], stride, m->len);
    call_int8_array(m->pg, &rows->numbers[INSTANCE_UPDATED_MS], stride, m->len);
    call_text_array(m->pg, &rows->texts[INSTANCE_DETAIL], stride, m->len);
    call_int8_array(m->pg, &rows->numbers[INSTANCE_TURNS], stride, m->len);
    call_int8_array(m->pg, &rows->numbers[INSTANCE_SEQ], stride, m->len);
    call_int4_array(m->pg, &rows->number_32[INSTANCE_VERSION], stride, m->len);
    call_bool_array(m->pg, &rows->yes, stride, m->len);
    call_bytes_array(m->pg, &rows->texts[INSTANCE_CUSTOM_STATUS], stride, m->len);
    call_text_array(m->pg, &rows->texts[INSTANCE_PARENT], stride, m->len);
    call_int4_array(m->pg, &rows->number_32[INSTANCE_BLOCKED], stride, m->len);
    call_send(m->pg, STATEMENT_INSTANCES);
}

static void add_executions(struct mending *m)
{
    const size_t stride = sizeof *m->rows;
    row_store_collect(m, ROWS_EXECUTIONS, TO_ADD);
    if (m->len == 0)
        return;
    call_int4_array(m->pg, &m->rows->p, stride, m->len);
    call_text_array(m->pg, &m->rows->instance, stride, m->len);
    call_int8_array(m->pg, &m->rows->execution, stride, m->len);
    call_int4_array(m->pg, &m->rows->number_32[EXECUTION_STATUS], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[EXECUTION_STARTED_MS], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[EXECUTION_ENDED_MS], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[EXECUTION_TURNS], stride, m->len);
    call_int8_array(m->pg, &m->rows->numbers[EXECUTION_SEQ], stride, m->len);
    call_send(m->pg, STATEMENT_EXECUTIONS);
}

/* Two calls, each within the most parameters that one may have. */
static thole_status row_store_mend_batch(struct mending *m, thole_error *reterr)
{
    call_begin(m->pg, "removing wrong rows");
    remove_rows(m, ROWS_ACTIVITIES, STATEMENT_ACTIVITIES_REMOVE);
    remove_rows(m, ROWS_TIMERS, STATEMENT_TIMERS_REMOVE);
    remove_rows(m, ROWS_QUARANTINE, STATEMENT_QUARANTINE_REMOVE);
    remove_executions(m);
    remove_instance(m);
    if (call_sent(m->pg) > 0)
        THOLE_TRY(call_run(m->pg, reterr));
    call_begin(m->pg, "writing rows from the history");
    write_activities(m, TO_CHANGE, STATEMENT_ROWS_ACTIVITIES_MEND);
    write_activities(m, TO_ADD, STATEMENT_ROWS_ACTIVITIES_ADD);
    add_timers(m);
    add_quarantine(m);
    row_store_add_instance(m);
    add_executions(m);
    return call_sent(m->pg) > 0 ? call_run(m->pg, reterr) : THOLE_OK;
}

/* ---- rows that are refused ---- */

static const enum unit_table unit_tables[ROW_TABLES] = {[ROWS_ACTIVITIES] = OF_ACTIVITIES,
                                                        [ROWS_TIMERS] = OF_TIMERS,
                                                        [ROWS_QUARANTINE] = OF_QUARANTINE,
                                                        [ROWS_EXECUTIONS] = OF_EXECUTIONS,
                                                        [ROWS_INSTANCES] = OF_INSTANCES};

static thole_status mend_begin(struct postgres *pg, thole_slice instance, thole_error *reterr)
{
    call_begin(pg, "mending rows");
    call_text(pg, instance);
    call_send(pg, STATEMENT_ASIDE_FORGET);
    call_send(pg, STATEMENT_SAVEPOINT);
    return call_run(pg, reterr);
}

static thole_status mend_send(struct postgres *pg, enum statement statement, thole_error *reterr)
{
    call_begin(pg, "mending rows");
    call_send(pg, statement);
    return call_run(pg, reterr);
}

static thole_status mend_set_aside(const struct mending *m, thole_error *reterr)
{
    const struct row_difference *const of = m->differences;
    const struct stored_row *const row = of->stored != NULL ? of->stored : &of->expected->row;
    enum unit_table const table = unit_tables[row->table];
    struct call_refusal why = m->pg->refusal;
    THOLE_TRY(mend_send(m->pg, STATEMENT_SAVEPOINT_UNDO, reterr));
    THOLE_TRY(projector_check_sound(m->pg, m->p, table, reterr));
    THOLE_TRY(aside_find_columns(m->pg, table, &why, reterr));
    struct aside_row refused = aside_row_of(m->instance, table, &why);
    refused.execution = row->execution;
    refused.id = row->id;
    refused.removal = of->expected == NULL;
    call_begin(m->pg, "setting a row aside");
    aside_send_add(m->pg, m->p, 0, &refused, 1);
    return call_run(m->pg, reterr);
}

/* Writes each row after a savepoint of its own. */
static thole_status mend_apart(struct mending *m, size_t *ret_refused, thole_error *reterr)
{
    size_t const n = m->n;
    const struct row_difference *const all = m->differences;
    thole_error said = {.status = THOLE_OK};
    m->n = 1;
    for (size_t i = 0; i < n; i++) {
        m->differences = &all[i];
        thole_status const status = row_store_mend_batch(m, &said);
        if (aside_is_of_data(status)) {
            THOLE_TRY(mend_set_aside(m, reterr));
            ++*ret_refused;
        } else if (status != THOLE_OK) {
            return thole_fail(reterr, status, "%s", said.text);
        }
        THOLE_TRY(mend_send(m->pg, STATEMENT_SAVEPOINT_RELEASE, reterr));
        THOLE_TRY(mend_send(m->pg, STATEMENT_SAVEPOINT, reterr));
    }
    return THOLE_OK;
}

static thole_status mend_instance(struct mending *m, size_t *ret_refused, thole_error *reterr)
{
    thole_error said = {.status = THOLE_OK};
    THOLE_TRY(mend_begin(m->pg, m->instance, reterr));
    thole_status status = row_store_mend_batch(m, &said);
    if (aside_is_of_data(status)) {
        THOLE_TRY(mend_send(m->pg, STATEMENT_SAVEPOINT_UNDO, reterr));
        THOLE_TRY(mend_apart(m, ret_refused, reterr));
    } else if (status != THOLE_OK) {
        return thole_fail(reterr, status, "%s", said.text);
    }
    return mend_send(m->pg, STATEMENT_SAVEPOINT_RELEASE, reterr);
}

thole_status row_store_mend(struct postgres *pg, thole_slice instance, uint32_t p,
                            const struct row_difference *differences, size_t n, size_t *ret_refused,
                            thole_error *reterr)
{
    assert(pg->in_transaction); /* after row_store_fence() */
    struct mending m = {.pg = pg, .instance = instance, .p = p, .differences = differences, .n = n};
    m.rows = memory_array(n + 1, sizeof *m.rows);
    *ret_refused = 0;
    thole_status const status = mend_instance(&m, ret_refused, reterr);
    free(m.rows);
    return status;
}

thole_status row_store_fence(struct postgres *pg, uint32_t p, thole_error *reterr)
{
    assert(!pg->in_transaction);
    call_begin(pg, "fencing a partition's owner");
    call_send(pg, STATEMENT_BEGIN);
    call_int4(pg, p);
    call_send(pg, STATEMENT_ROWS_FENCE);
    thole_status status = call_run(pg, reterr);
    pg->in_transaction = true;
    if (status == THOLE_OK && call_rows(pg, 1) != 1)
        status = thole_fail(reterr, THOLE_UNAVAILABLE, "no engine has opened partition %u yet", p);
    if (status != THOLE_OK)
        row_store_rollback(pg);
    return status;
}

thole_status row_store_commit(struct postgres *pg, thole_error *reterr)
{
    return call_commit(pg, "mending rows", reterr);
}

void row_store_rollback(struct postgres *pg)
{
    call_rollback(pg, "mending rows");
}
