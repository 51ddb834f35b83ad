/* Histories of real instances, from a file: a production case becomes a test. */
#include "history_file.h"
#include "kit.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LOAD_BYTES_MAX = 256 * 1024 * 1024 };

struct loading {
    thole_slice wanted; /* empty: the only one */
    thole_slice instance;
    struct arena arena;
    struct buf records; /* struct record: its turns */
    size_t histories;
    bool taken; /* the history at hand is the wanted one */
    thole_error *reterr;
};

static size_t records_len(const struct loading *loading)
{
    return loading->records.len / sizeof(struct record);
}

static const struct record *record_at(const struct loading *loading, size_t i)
{
    return &((const struct record *)(const void *)loading->records.ptr)[i];
}

/* ---- reading ---- */

static thole_status kit_load_on_begin(void *arg, thole_slice instance)
{
    struct loading *loading = arg;
    loading->taken = loading->wanted.len == 0 || thole_slice_equal(loading->wanted, instance);
    if (!loading->taken)
        return THOLE_OK;
    if (loading->histories++ > 0)
        return thole_fail(loading->reterr, THOLE_INVALID, "the file has several histories: name an instance");
    return arena_dup(&loading->arena, instance, &loading->instance);
}

static thole_status kit_load_on_record(void *arg, uint64_t sequence, thole_slice bytes)
{
    struct loading *loading = arg;
    struct record record;
    (void)sequence;
    if (!loading->taken)
        return THOLE_OK;
    THOLE_TRY(record_decode(bytes, &loading->arena, &record, loading->reterr));
    if (record.kind != RECORD_TURN || !thole_slice_equal(record.turn.instance, loading->instance))
        return thole_fail(loading->reterr, THOLE_CORRUPT, "the history holds a record of something else");
    buf_append(&loading->records, &record, sizeof record);
    return buf_status(&loading->records);
}

static thole_status kit_load_on_end(void *arg)
{
    (void)arg;
    return THOLE_OK;
}

static thole_status kit_load_read_file(const char *path, struct loading *loading)
{
    struct history_file_reader const reader = {
        .begin = kit_load_on_begin, .record = kit_load_on_record, .end = kit_load_on_end, .arg = loading};
    FILE *from = fopen(path, "re");
    if (from == NULL)
        return thole_fail(loading->reterr, THOLE_NOT_FOUND, "cannot open %.300s: %s", path, strerror(errno));
    thole_status const status = history_file_read(from, &reader, loading->reterr);
    (void)fclose(from);
    if (status == THOLE_OK && records_len(loading) == 0)
        return thole_fail(loading->reterr, THOLE_NOT_FOUND, "%.300s has no such history", path);
    return status;
}

/* ---- as if the engine before had written it ---- */

static void log_end(const thole_test_env *env, struct arena *arena, struct record *ret_last,
                    uint64_t *ret_opened)
{
    size_t opened = env->records_len;
    while (opened > 0 && env->records[opened - 1].kind != RECORD_EPOCH_OPENED)
        opened--;
    kit_must(opened > 0);
    *ret_opened = opened;
    kit_must(record_decode(env->records[env->records_len - 1].bytes, arena, ret_last, NULL) == THOLE_OK);
}

static void kit_load_append(thole_test_env *env, const struct record *from)
{
    struct record record = *from, last;
    struct arena arena;
    struct buf bytes;
    uint64_t opened;
    arena_init(&arena, LOAD_BYTES_MAX);
    buf_init(&bytes, RECORD_BYTES_MAX);
    log_end(env, &arena, &last, &opened);
    record.epoch = last.epoch;
    record.n = env->records_len + 1 - opened;
    record.committed = record.n - 1;
    record.position = last.position;
    record.published = last.published;
    record.previous = (struct record_hash){{0}};
    record.previous_of_instance = (struct record_link){{{0}}, 0};
    kit_must(record_encode(&record, &bytes) == THOLE_OK);
    (void)kit_log_append(env, &(struct out_append){.kind = RECORD_TURN,
                                                   .instance = record.turn.instance,
                                                   .execution = record.turn.execution,
                                                   .expected_last = env->records_len,
                                                   .bytes = buf_bytes(&bytes)});
    if (record.turn.time_ms > env->now_ms)
        env->now_ms = record.turn.time_ms;
    buf_release(&bytes);
    arena_release(&arena);
}

/* How many records there are up to the last whole turn of the newest execution that ends at @p until or
 * before. */
static size_t records_until(const struct loading *loading, uint64_t until)
{
    size_t const len = records_len(loading);
    uint64_t const newest = record_at(loading, len - 1)->turn.execution;
    size_t whole = 0;
    for (size_t i = 0; i < len; i++) {
        const struct turn *turn = &record_at(loading, i)->turn;
        uint64_t const last = turn->events_len == 0 ? 0 : turn->events[turn->events_len - 1].id;
        if (until != 0 && turn->execution == newest && last > until)
            break;
        if (!turn->more)
            whole = i + 1;
    }
    return whole;
}

static thole_status kit_load_load(thole_test_env *env, struct loading *loading, uint64_t until)
{
    size_t const len = records_until(loading, until);
    const struct kit_instance *there = kit_instance_find(env, loading->instance);
    if (there != NULL && there->records_len > 0)
        return thole_fail(loading->reterr, THOLE_CONFLICT, "\"%.*s\" is there already",
                          THOLE_FMT(loading->instance));
    if (len == 0)
        return thole_fail(loading->reterr, THOLE_NOT_FOUND, "no turn ends at event %" PRIu64 " or before",
                          until);
    for (size_t i = 0; i < len; i++)
        kit_load_append(env, record_at(loading, i));
    kit_open(env); /* another engine finds it in the log */
    kit_pump(env);
    return THOLE_OK;
}

thole_status thole_test_load_history(thole_test_env *env, const char *path, thole_slice instance,
                                     uint64_t until_event, thole_error *reterr)
{
    struct loading loading = {.wanted = instance, .reterr = reterr};
    arena_init(&loading.arena, LOAD_BYTES_MAX);
    buf_init(&loading.records, LOAD_BYTES_MAX);
    kit_pump(env);
    thole_status status = kit_load_read_file(path, &loading);
    if (status == THOLE_OK)
        status = kit_load_load(env, &loading, until_event);
    buf_release(&loading.records);
    arena_release(&loading.arena);
    return status;
}
