#include "projector_units.h"
#include "instance_rows.h"
#include "memory.h"
#include "postgres_call.h"
#include <stdlib.h>
#include <string.h>

const char *const unit_table_names[UNIT_TABLES] = {"worker_queue", "timers", "quarantine", "instances",
                                                   "executions"};

const struct unit_rule unit_rules[UNIT_KINDS] = {
    [UNIT_DELETES + DELETES_ACTIVITIES] = {OF_ACTIVITIES, true, true},
    [UNIT_DELETES + DELETES_TIMERS] = {OF_TIMERS, true, true},
    [UNIT_DELETES + DELETES_QUARANTINE] = {OF_QUARANTINE, true, true},
    [UNIT_DELETES + DELETES_INSTANCES] = {OF_INSTANCES, true, true},
    [UNIT_DELETES + DELETES_EXECUTIONS] = {OF_EXECUTIONS, true, true},
    [UNIT_DELETES + DELETES_PRUNED] = {OF_EXECUTIONS, true, true},
    [UNIT_ADD_FIRST] = {OF_ACTIVITIES, false, false},
    [UNIT_REMOVE_ACTIVITY] = {OF_ACTIVITIES, true, false},
    [UNIT_ADD_LATER] = {OF_ACTIVITIES, false, false},
    [UNIT_REMOVE_TIMER] = {OF_TIMERS, true, false},
    [UNIT_ADD_TIMER] = {OF_TIMERS, false, false},
    [UNIT_REMOVE_QUARANTINE] = {OF_QUARANTINE, true, false},
    [UNIT_ADD_QUARANTINE] = {OF_QUARANTINE, false, false},
    [UNIT_INSTANCE] = {OF_INSTANCES, false, false},
    [UNIT_EXECUTION] = {OF_EXECUTIONS, false, false},
};

size_t projector_store_rows(const struct batch *batch)
{
#define ADD(kind) +batch->kind##_len
    return 0 EACH_KIND(ADD);
#undef ADD
}

static void units_add(struct units *to, enum unit_kind kind, size_t index, thole_slice instance,
                      uint64_t execution, uint64_t id)
{
    to->items[to->len++] = (struct unit){kind, unit_rules[kind].removal, index, instance, execution, id};
}

/* Only what it removes: other deletions name no execution, or no record. */
static void units_add_deletion(struct units *to, const struct batch_deletion *row, size_t index)
{
    bool const all = row->history_seq > 0;
    for (enum deletes deletes = DELETES_ACTIVITIES; deletes <= DELETES_QUARANTINE; deletes++)
        if (row->execution > 0)
            units_add(to, UNIT_DELETES + deletes, index, row->instance, row->execution, 0);
    for (enum deletes deletes = DELETES_INSTANCES; all && deletes <= DELETES_EXECUTIONS; deletes++)
        units_add(to, UNIT_DELETES + deletes, index, row->instance, row->execution, 0);
    if (row->pruned.upto > 0)
        units_add(to, UNIT_DELETES + DELETES_PRUNED, index, row->instance, row->pruned.upto, 0);
}

static void units_add_instance(struct units *to, const struct batch_instance *row, size_t index)
{
    units_add(to, UNIT_INSTANCE, index, row->instance, 0, 0);
    to->items[to->len - 1].removal = row->removed;
    if (!row->removed && !instance_row_says_execution(row))
        return;
    units_add(to, UNIT_EXECUTION, index, row->instance, row->execution, 0);
    to->items[to->len - 1].removal = row->removed;
}

void units_of_batch(struct units *to, const struct batch *batch)
{
    for (size_t i = 0; i < batch->deletions_len; i++)
        units_add_deletion(to, &batch->deletions[i], i);
#define ADD(array, kind, number)                                                                             \
    for (size_t i = 0; i < batch->array##_len; i++)                                                          \
        units_add(to, (kind), i, batch->array[i].instance, batch->array[i].execution, batch->array[i].number);
    ADD(activities_added, batch->activities_added[i].try_number > 1 ? UNIT_ADD_LATER : UNIT_ADD_FIRST,
        activity_id)
    ADD(activities_removed, UNIT_REMOVE_ACTIVITY, activity_id)
    ADD(timers_removed, UNIT_REMOVE_TIMER, timer_id)
    ADD(timers_added, UNIT_ADD_TIMER, timer_id)
    ADD(quarantine_removed, UNIT_REMOVE_QUARANTINE, activity_id)
    ADD(quarantine_added, UNIT_ADD_QUARANTINE, activity_id)
#undef ADD
    for (size_t i = 0; i < batch->instances_len; i++)
        units_add_instance(to, &batch->instances[i], i);
}

size_t units_most(const struct batch *batch)
{
    return projector_store_rows(batch) + batch->instances_len + (DELETES - 1) * batch->deletions_len;
}

static int units_compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Groups lock rows in the order of their keys. */
int units_compare(const void *left, const void *right)
{
    const struct unit *const a = left, *const b = right;
    size_t const both = a->instance.len < b->instance.len ? a->instance.len : b->instance.len;
    int order = both > 0 ? memcmp(a->instance.ptr, b->instance.ptr, both) : 0;
    if (order == 0)
        order = units_compare_numbers(a->instance.len, b->instance.len);
    if (order == 0)
        order = units_compare_numbers(a->kind, b->kind);
    if (order == 0)
        order = units_compare_numbers(a->execution, b->execution);
    return order != 0 ? order : units_compare_numbers(a->id, b->id);
}

/* ---- how many are set aside ---- */

uint64_t projector_store_set_aside(const struct postgres *pg, uint32_t partition)
{
    return pg->set_aside == NULL || partition >= PARTITIONS_MAX ? 0 : pg->set_aside[partition];
}

void aside_send_counts(struct postgres *pg, const uint32_t *partitions, size_t n)
{
    call_order(pg, NULL);
    call_int4_array(pg, partitions, sizeof *partitions, n);
    call_send(pg, STATEMENT_ASIDE_COUNT);
}

void aside_keep_count(struct postgres *pg, uint32_t partition, uint64_t rows)
{
    if (pg->set_aside == NULL && rows > 0)
        pg->set_aside = memory_array(PARTITIONS_MAX, sizeof *pg->set_aside);
    if (pg->set_aside != NULL)
        pg->set_aside[partition] = (uint16_t)(rows < UINT16_MAX ? rows : UINT16_MAX);
}

void aside_keep_counts(struct postgres *pg, const uint32_t *partitions, size_t n, size_t place)
{
    for (size_t i = 0; i < n; i++)
        aside_keep_count(pg, partitions[i], 0);
    for (size_t row = 0; row < call_rows(pg, place); row++)
        for (size_t i = 0; i < n; i++)
            if (call_cell_int8(pg, place, row, 0) == partitions[i])
                aside_keep_count(pg, partitions[i], call_cell_int8(pg, place, row, 1));
}

void aside_keep_counts_of(struct postgres *pg, struct batch *const *batches, size_t n, size_t place)
{
    uint32_t *const partitions = memory_array(n, sizeof *partitions);
    for (size_t i = 0; i < n; i++)
        partitions[i] = batches[i]->partition;
    aside_keep_counts(pg, partitions, n, place);
    free(partitions);
}

/* ---- rows that are set aside no more ---- */

struct cleared aside_cleared_by(const struct unit *unit)
{
    const struct unit_rule *const rule = &unit_rules[unit->kind];
    return (struct cleared){.instance = unit->instance,
                            .table = thole_slice_from(unit_table_names[rule->table]),
                            .execution = unit->execution,
                            .id = unit->id,
                            .whole = rule->whole};
}

void aside_send_cleared(struct postgres *pg, const struct cleared *keys, size_t n)
{
    call_order(pg, NULL);
    call_text_array(pg, &keys->instance, sizeof *keys, n);
    call_text_array(pg, &keys->table, sizeof *keys, n);
    call_int8_array(pg, &keys->execution, sizeof *keys, n);
    call_int8_array(pg, &keys->id, sizeof *keys, n);
    call_bool_array(pg, &keys->whole, sizeof *keys, n);
    call_send(pg, STATEMENT_ASIDE_CLEAR);
}

size_t aside_send_clear(struct postgres *pg, struct batch *const *batches, size_t n)
{
    struct units units = {NULL, 0};
    uint32_t *const partitions = memory_array(n, sizeof *partitions);
    size_t most = 0, with_any = 0, place = 0;
    for (size_t i = 0; i < n; i++)
        if (projector_store_set_aside(pg, batches[i]->partition) > 0)
            most += units_most(batches[i]);
    units.items = memory_array(most, sizeof *units.items);
    for (size_t i = 0; i < n; i++)
        if (projector_store_set_aside(pg, batches[i]->partition) > 0) {
            units_of_batch(&units, batches[i]);
            partitions[with_any++] = batches[i]->partition;
        }
    if (units.len > 0) {
        struct cleared *const keys = memory_array(units.len, sizeof *keys);
        for (size_t i = 0; i < units.len; i++)
            keys[i] = aside_cleared_by(&units.items[i]);
        aside_send_cleared(pg, keys, units.len);
        place = call_sent(pg);
        aside_send_counts(pg, partitions, with_any);
        free(keys);
    }
    free(units.items);
    free(partitions);
    return place;
}

/* ---- rows that are refused ---- */

bool aside_is_of_data(thole_status status)
{
    return status == THOLE_INVALID || status == THOLE_LIMIT;
}

thole_status aside_find_columns(struct postgres *pg, enum unit_table table, struct call_refusal *why,
                                thole_error *reterr)
{
    if (why->column[0] != '\0' || why->constraint[0] == '\0')
        return THOLE_OK;
    call_begin(pg, "looking for the column that is refused");
    call_text(pg, thole_slice_from(why->constraint));
    call_text(pg, thole_slice_from(unit_table_names[table]));
    call_send(pg, STATEMENT_CONSTRAINT_COLUMNS);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) == 1)
        (void)snprintf(why->column, sizeof why->column, "%.*s", THOLE_FMT(call_cell_text(pg, 0, 0, 0)));
    return THOLE_OK;
}

struct aside_row aside_row_of(thole_slice instance, enum unit_table table, const struct call_refusal *why)
{
    return (struct aside_row){.instance = instance,
                              .table = thole_slice_from(unit_table_names[table]),
                              .column = thole_slice_from(why->column),
                              .code = thole_slice_from(why->code),
                              .reason = thole_slice_from(why->reason)};
}

void aside_send_add(struct postgres *pg, uint32_t partition, uint64_t seq, const struct aside_row *rows,
                    size_t n)
{
    size_t const stride = sizeof *rows;
    call_order(pg, NULL);
    call_int4(pg, partition);
    call_int8(pg, seq);
    call_readable_array(pg, &rows->instance, stride, n);
    call_text_array(pg, &rows->table, stride, n);
    call_int8_array_most(pg, &rows->execution, stride, n, INT64_MAX);
    call_int8_array_most(pg, &rows->id, stride, n, INT64_MAX);
    call_bool_array(pg, &rows->removal, stride, n);
    call_readable_array(pg, &rows->column, stride, n);
    call_text_array(pg, &rows->code, stride, n);
    call_readable_array(pg, &rows->reason, stride, n);
    call_send(pg, STATEMENT_ASIDE_ADD);
}
