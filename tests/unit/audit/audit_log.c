#include "audit_log.h"
#include "payload_hash.h"
#include "thole_cunit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const story_ids[LOG_INSTANCES] = {"a", "b", "c"};

static void store(struct log *log, struct record *record, size_t instance)
{
    static const struct salt_key key = {.bytes = {7}};
    static const struct salt_source salts = {&key, 3};
    struct audit_record *to = &log->records[log->len];
    struct buf bytes;
    CU_ASSERT_FATAL(log->len < LOG_MAX);
    buf_init(&bytes, 1 << 16);
    record->epoch = log->epoch;
    record->n = log->n++;
    record->committed = record->n > log->committed_lag ? record->n - log->committed_lag : 0;
    record->salts = log->old ? NULL : &salts;
    if (!log->old)
        record->previous = log->newest;
    if (!log->old && instance < 3)
        record->previous_of_instance.hash = log->instances[instance];
    CU_ASSERT_EQUAL(record_encode(record, &bytes), THOLE_OK);
    *to = (struct audit_record){.sequence = ++log->sequence, .kind = record->kind};
    CU_ASSERT_EQUAL(arena_dup(&log->arena, buf_bytes(&bytes), &to->bytes), THOLE_OK);
    if (instance < 3) {
        to->instance = thole_slice_from(story_ids[instance]);
        to->execution = record->turn.execution;
    }
    log->newest = record_hash_make(THOLE_STR("ns"), 3, to->bytes);
    if (instance < 3)
        log->instances[instance] = log->newest;
    log->len++;
    buf_release(&bytes);
}

void story_open_epoch(struct log *log)
{
    struct record record = {.kind = RECORD_EPOCH_OPENED,
                            .node = THOLE_STR("e"),
                            .time_ms = 1000,
                            .previous_epoch = log->epoch,
                            .previous_n = log->n == 0 ? 0 : log->n - 1};
    log->epoch++;
    log->n = 0;
    store(log, &record, SIZE_MAX);
}

void story_turn_in(struct log *log, size_t instance, uint64_t execution, bool prunes)
{
    struct event events[] = {
        {.id = 1, .kind = EVENT_EVENT_RECEIVED, .name = THOLE_STR("e"), .data = THOLE_STR("data")},
        {.id = 2, .kind = EVENT_HISTORY_PRUNED, .kept = 1, .before = 3}};
    struct record record = {.kind = RECORD_TURN,
                            .turn = {.instance = thole_slice_from(story_ids[instance]),
                                     .execution = execution,
                                     .number = ++log->turns[instance],
                                     .time_ms = 1000 + log->sequence,
                                     .ran = true,
                                     .events = events,
                                     .events_len = prunes ? 2 : 1}};
    store(log, &record, instance);
}

void story_turn(struct log *log, size_t instance)
{
    story_turn_in(log, instance, 1, false);
}

void story_delete_instance(struct log *log, size_t instance)
{
    struct record record = {
        .kind = RECORD_DELETED,
        .deletion = {.instance = thole_slice_from(story_ids[instance]), .execution = 1, .time_ms = 5000}};
    store(log, &record, instance);
}

static void position(struct log *log)
{
    store(log, &(struct record){.kind = RECORD_POSITION}, SIZE_MAX);
}

struct log *story_written(void)
{
    struct log *log = calloc(1, sizeof *log);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    arena_init(&log->arena, 1 << 24);
    log->committed_lag = 1;
    story_open_epoch(log);
    story_turn(log, 0), story_turn(log, 1), story_turn(log, 0), story_turn(log, 2), story_turn(log, 1);
    position(log);
    story_open_epoch(log);
    story_turn(log, 0), story_turn(log, 1), story_turn(log, 2), story_turn(log, 0);
    return log;
}

void story_end(struct log *log)
{
    arena_release(&log->arena);
    free(log);
}

static void found(void *arg, const struct audit_finding *finding)
{
    struct log *log = arg;
    size_t const len = strlen(log->said);
    log->findings++;
    (void)snprintf(log->said + len, sizeof log->said - len, "%s%s %llu", len == 0 ? "" : ", ",
                   audit_fault_name(finding->fault), (unsigned long long)finding->sequence);
    CU_ASSERT(finding->text[0] != '\0');
}

struct audit_summary story_check_as(struct log *log, const char *ns, uint32_t partition)
{
    struct audit *audit = audit_create(&(struct audit_options){.scope = AUDIT_PARTITION,
                                                               .ns = thole_slice_from(ns),
                                                               .partition = partition,
                                                               .seal = log->seal,
                                                               .extends = log->extends,
                                                               .found = found,
                                                               .arg = log});
    log->said[0] = '\0';
    log->findings = 0;
    for (size_t i = 0; i < log->len; i++)
        if (log->records[i].sequence > 0)
            audit_take(audit, &log->records[i]);
    audit_end(audit);
    struct audit_summary const summary = audit_summary(audit);
    CU_ASSERT_EQUAL(summary.findings, log->findings);
    audit_destroy(audit);
    return summary;
}

struct audit_summary story_check(struct log *log)
{
    return story_check_as(log, "ns", 3);
}

struct audit_summary story_check_instance(struct log *log, size_t instance)
{
    thole_slice const id = thole_slice_from(story_ids[instance]);
    struct audit *audit = audit_create(&(struct audit_options){.scope = AUDIT_INSTANCE,
                                                               .ns = THOLE_STR("ns"),
                                                               .partition = 3,
                                                               .seal = log->seal,
                                                               .instance = id,
                                                               .found = found,
                                                               .arg = log});
    log->said[0] = '\0';
    log->findings = 0;
    for (size_t i = 0; i < log->len; i++)
        if (log->records[i].sequence > 0 && thole_slice_equal(log->records[i].instance, id))
            audit_take(audit, &log->records[i]);
    audit_end(audit);
    struct audit_summary const summary = audit_summary(audit);
    audit_destroy(audit);
    return summary;
}
