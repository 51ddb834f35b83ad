/* Reads for people. */
#include "query_store.h"
#include "event.h"
#include "message.h"
#include "postgres_call.h"
#include <string.h>

enum {
    LIST_LIMIT = 100,    /* when the filter says 0 */
    LIST_PAGE_MAX = 500, /* rows of one round trip */
    ACTIVITIES_MAX = 10000,
    LIST_SET_ASIDE_MAX = 1000,
    LIST_STANDING_MAX = 1000,
    STATUSES_MAX = 32,
    PREFIX_BYTES_MAX = 2 * THOLE_ID_BYTES_MAX + 1,
    PLACE_BYTES_MAX = 1024 * 1024, /* of an id that thole has not written: an index holds no longer one */
};

/* Only an owner of the database who has removed the checks of the tables can have written such a row. */
static bool is_foreign(thole_slice instance)
{
    return id_check(instance, NULL) != THOLE_OK;
}

/* Row @p row of result @p i; the columns are INSTANCE_COLUMNS of statements.c. */
static thole_instance_info read_info(const struct postgres *pg, size_t i, size_t row)
{
    return (thole_instance_info){
        .foreign = is_foreign(call_cell_text(pg, i, row, 0)),
        .instance = call_cell_text(pg, i, row, 0),
        .orchestration = call_cell_text(pg, i, row, 1),
        .execution = call_cell_int8(pg, i, row, 2),
        .status = (thole_instance_status)call_cell_int8(pg, i, row, 3),
        .created_ms = call_cell_int8(pg, i, row, 4),
        .updated_ms = call_cell_int8(pg, i, row, 5),
        .detail = call_cell_text(pg, i, row, 6),
        .partition = (uint32_t)call_cell_int8(pg, i, row, 7),
        .open_activities = call_cell_int8(pg, i, row, 8),
        .open_timers = call_cell_int8(pg, i, row, 9),
        .version = (uint32_t)call_cell_int8(pg, i, row, 10),
        .custom_status = call_cell_text(pg, i, row, 11),
        .parent = call_cell_text(pg, i, row, 12),
        .turns = call_cell_int8(pg, i, row, 13),
        .reason = blocked_kind_name((enum blocked_kind)call_cell_int8(pg, i, row, 14)),
    };
}

thole_status query_store_show(struct postgres *pg, thole_slice instance, thole_instance_fn *each, void *arg,
                              thole_error *reterr)
{
    call_begin(pg, "reading an instance");
    call_text(pg, instance);
    call_send(pg, STATEMENT_SHOW);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) == 0)
        return thole_fail(reterr, THOLE_NOT_FOUND, "no instance \"%.*s\" in the projection (yet)",
                          THOLE_FMT(instance));
    thole_instance_info info = read_info(pg, 0, 0);
    return each(arg, &info);
}

/* A pattern for LIKE: what is special in one is escaped. */
static void make_pattern(thole_slice prefix, struct buf *to)
{
    for (size_t i = 0; i < prefix.len; i++) {
        if (prefix.ptr[i] == '%' || prefix.ptr[i] == '_' || prefix.ptr[i] == '\\')
            buf_text(to, "\\");
        buf_append(to, &prefix.ptr[i], 1);
    }
    if (prefix.len > 0)
        buf_text(to, "%");
}

/* Where the next page begins: after this row. The id is a copy, since the row is freed with its result. */
struct list_place {
    uint64_t created_ms;
    struct buf id;
};

thole_status query_store_standing(struct postgres *pg, bool named, thole_standing_fn *each, void *arg,
                                  thole_error *reterr)
{
    call_begin(pg, "counting what stands still");
    call_int8(pg, LIST_STANDING_MAX);
    call_send(pg, named ? STATEMENT_STANDING_NAMED : STATEMENT_STANDING);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        thole_standing_info info = {
            .orchestration = call_cell_text(pg, 0, row, 0),
            .status = (thole_instance_status)call_cell_int8(pg, 0, row, 1),
            .reason = blocked_kind_name((enum blocked_kind)call_cell_int8(pg, 0, row, 2)),
            .count = call_cell_int8(pg, 0, row, 3),
        };
        if (named) {
            info.example = call_cell_text(pg, 0, row, 4);
            info.updated_ms = call_cell_int8(pg, 0, row, 5);
            info.detail = call_cell_text(pg, 0, row, 6);
        }
        THOLE_TRY(each(arg, &info));
    }
    return THOLE_OK;
}

static thole_status keep_id(struct buf *to, thole_slice id, thole_error *reterr)
{
    buf_clear(to);
    buf_append(to, id.ptr, id.len);
    thole_status const status = buf_status(to);
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "an instance id of %zu bytes is in the way", id.len);
    return THOLE_OK;
}

/* None: all. */
static size_t statuses_of(const thole_list_filter *filter, uint32_t to[STATUSES_MAX])
{
    size_t n = 0;
    if (filter->status != THOLE_INSTANCE_UNKNOWN)
        to[n++] = (uint32_t)filter->status;
    for (uint32_t status = 1; filter->status == THOLE_INSTANCE_UNKNOWN && status < STATUSES_MAX; status++)
        if ((filter->statuses >> status & 1) != 0)
            to[n++] = status;
    return n;
}

static thole_status query_store_read_page(struct postgres *pg, const thole_list_filter *filter,
                                          thole_slice pattern, const struct list_place *place, uint64_t limit,
                                          thole_error *reterr)
{
    uint32_t statuses[STATUSES_MAX];
    call_begin(pg, "listing instances");
    call_text(pg, THOLE_STR("plan_cache_mode")); /* the best index depends on the filter */
    call_text(pg, THOLE_STR("force_custom_plan"));
    call_send(pg, STATEMENT_SET);
    call_int4_array(pg, statuses, sizeof statuses[0], statuses_of(filter, statuses));
    call_text(pg, filter->orchestration);
    call_text(pg, pattern);
    call_int8(pg, place->created_ms);
    call_text(pg, buf_bytes(&place->id));
    call_int8(pg, limit);
    call_text(pg, filter->parent);
    call_int8(pg, filter->created_after_ms < INT64_MAX ? filter->created_after_ms : INT64_MAX);
    call_bytes_array(pg, &filter->custom_status, sizeof filter->custom_status, 1);
    call_send(pg, STATEMENT_LIST);
    return call_run(pg, reterr);
}

/* Foreign rows do not count as rows of the list. */
static thole_status give_page(const struct postgres *pg, thole_instance_fn *each, void *arg,
                              struct list_place *place, uint64_t *left, thole_error *reterr)
{
    for (size_t row = 0; row < call_rows(pg, 1); row++) {
        thole_instance_info info = read_info(pg, 1, row);
        place->created_ms = info.created_ms;
        THOLE_TRY(keep_id(&place->id, info.instance, reterr));
        *left -= !info.foreign;
        THOLE_TRY(each(arg, &info));
    }
    return THOLE_OK;
}

static thole_status read_pages(struct postgres *pg, const thole_list_filter *filter, thole_slice pattern,
                               struct list_place *place, thole_instance_fn *each, void *arg,
                               thole_error *reterr)
{
    uint64_t left = filter->limit > 0 ? filter->limit : LIST_LIMIT;
    for (bool more = true; more && left > 0;) {
        uint64_t const wanted = left < LIST_PAGE_MAX ? left : LIST_PAGE_MAX;
        THOLE_TRY(query_store_read_page(pg, filter, pattern, place, wanted, reterr));
        more = call_rows(pg, 1) == wanted;
        THOLE_TRY(give_page(pg, each, arg, place, &left, reterr));
    }
    return THOLE_OK;
}

thole_status query_store_list(struct postgres *pg, const thole_list_filter *filter, thole_instance_fn *each,
                              void *arg, thole_error *reterr)
{
    struct list_place place = {.created_ms = INT64_MAX}; /* in front of all */
    struct buf pattern;
    thole_status status = THOLE_OK;
    if (filter->behind_instance.len > THOLE_ID_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "behind_instance is longer than any id");
    buf_init(&place.id, PLACE_BYTES_MAX);
    buf_init(&pattern, PREFIX_BYTES_MAX);
    if (filter->created_before_ms > 0 && filter->created_before_ms <= INT64_MAX)
        place.created_ms = filter->created_before_ms - 1;
    if (filter->behind_instance.len > 0 && filter->behind_created_ms <= place.created_ms) {
        place.created_ms = filter->behind_created_ms;
        status = keep_id(&place.id, filter->behind_instance, reterr);
    }
    make_pattern(filter->id_prefix, &pattern);
    if (status == THOLE_OK && buf_status(&pattern) != THOLE_OK)
        status =
            thole_fail(reterr, buf_status(&pattern), "the prefix has more than %d bytes", THOLE_ID_BYTES_MAX);
    if (status == THOLE_OK)
        status = read_pages(pg, filter, buf_bytes(&pattern), &place, each, arg, reterr);
    buf_release(&pattern);
    buf_release(&place.id);
    return status;
}

/* ---- counts ---- */

static thole_status query_store_count_filter(struct postgres *pg, const thole_list_filter *filter,
                                             thole_slice pattern, thole_instance_counts *ret,
                                             thole_error *reterr)
{
    uint64_t const before_ms = filter->created_before_ms;
    call_begin(pg, "counting instances");
    call_text(pg, THOLE_STR("plan_cache_mode"));
    call_text(pg, THOLE_STR("force_custom_plan"));
    call_send(pg, STATEMENT_SET);
    call_text(pg, filter->orchestration);
    call_text(pg, pattern);
    call_text(pg, filter->parent);
    call_bytes_array(pg, &filter->custom_status, sizeof filter->custom_status, 1);
    call_int8(pg, filter->created_after_ms < INT64_MAX ? filter->created_after_ms : INT64_MAX);
    call_int8(pg, before_ms > 0 && before_ms < INT64_MAX ? before_ms : INT64_MAX);
    call_int8(pg, COUNT_MAX);
    call_send(pg, STATEMENT_COUNT);
    THOLE_TRY(call_run(pg, reterr));
    ret->exact = true;
    memset(ret->of, 0, sizeof ret->of);
    for (size_t row = 0; row < call_rows(pg, 1); row++) {
        uint64_t const status = call_cell_int8(pg, 1, row, 0), n = call_cell_int8(pg, 1, row, 1);
        if (status < sizeof ret->of / sizeof ret->of[0])
            ret->of[status] = n;
        ret->exact &= n < COUNT_MAX;
    }
    return THOLE_OK;
}

thole_status query_store_count(struct postgres *pg, const thole_list_filter *filter,
                               thole_instance_counts *ret, thole_error *reterr)
{
    struct buf pattern;
    buf_init(&pattern, PREFIX_BYTES_MAX);
    make_pattern(filter->id_prefix, &pattern);
    thole_status status = buf_status(&pattern);
    if (status != THOLE_OK)
        status = thole_fail(reterr, status, "the prefix has more than %d bytes", THOLE_ID_BYTES_MAX);
    else
        status = query_store_count_filter(pg, filter, buf_bytes(&pattern), ret, reterr);
    buf_release(&pattern);
    return status;
}

/* ---- executions ---- */

thole_status query_store_executions(struct postgres *pg, thole_slice instance, thole_execution_fn *each,
                                    void *arg, thole_error *reterr)
{
    size_t rows = LIST_PAGE_MAX;
    for (uint64_t last = 0; rows == LIST_PAGE_MAX;) {
        call_begin(pg, "listing executions");
        call_text(pg, instance);
        call_int8(pg, last);
        call_int8(pg, LIST_PAGE_MAX);
        call_send(pg, STATEMENT_LIST_EXECUTIONS);
        THOLE_TRY(call_run(pg, reterr));
        rows = call_rows(pg, 0);
        for (size_t row = 0; row < rows; row++) {
            thole_execution_info const info = {.execution = call_cell_int8(pg, 0, row, 0),
                                               .status = (thole_instance_status)call_cell_int8(pg, 0, row, 1),
                                               .started_ms = call_cell_int8(pg, 0, row, 2),
                                               .ended_ms = call_cell_int8(pg, 0, row, 3),
                                               .turns = call_cell_int8(pg, 0, row, 4)};
            last = info.execution;
            THOLE_TRY(each(arg, &info));
        }
    }
    return THOLE_OK;
}

/* ---- quarantine ---- */

/* Where the next page begins: after this row. */
struct poisoned_place {
    uint64_t since_ms, execution, activity_id;
    struct buf id;
};

static thole_status read_poisoned_page(struct postgres *pg, const thole_poisoned_filter *filter,
                                       const struct poisoned_place *place, uint64_t limit,
                                       thole_error *reterr)
{
    call_begin(pg, "listing what is in quarantine");
    call_text(pg, filter->queue);
    call_text(pg, filter->instance);
    call_int8(pg, place->since_ms);
    call_text(pg, buf_bytes(&place->id));
    call_int8(pg, place->execution);
    call_int8(pg, place->activity_id);
    call_int8(pg, limit);
    call_send(pg, STATEMENT_LIST_QUARANTINE);
    return call_run(pg, reterr);
}

static thole_status give_poisoned(const struct postgres *pg, size_t row, thole_poisoned_fn *each, void *arg,
                                  struct poisoned_place *place, uint64_t *left, thole_error *reterr)
{
    thole_poisoned_info const info = {.instance = call_cell_text(pg, 0, row, 0),
                                      .execution = call_cell_int8(pg, 0, row, 1),
                                      .activity_id = call_cell_int8(pg, 0, row, 2),
                                      .queue = call_cell_text(pg, 0, row, 3),
                                      .activity = call_cell_text(pg, 0, row, 4),
                                      .try_number = (uint32_t)call_cell_int8(pg, 0, row, 5),
                                      .claims = (uint32_t)call_cell_int8(pg, 0, row, 6),
                                      .worker = call_cell_text(pg, 0, row, 7),
                                      .reason = call_cell_text(pg, 0, row, 8),
                                      .since_ms = call_cell_int8(pg, 0, row, 9),
                                      .until_ms = call_cell_int8(pg, 0, row, 10),
                                      .foreign = is_foreign(call_cell_text(pg, 0, row, 0))};
    place->since_ms = info.since_ms;
    place->execution = info.execution;
    place->activity_id = info.activity_id;
    THOLE_TRY(keep_id(&place->id, info.instance, reterr));
    *left -= !info.foreign;
    return each(arg, &info);
}

static thole_status read_poisoned_pages(struct postgres *pg, const thole_poisoned_filter *filter,
                                        struct poisoned_place *place, thole_poisoned_fn *each, void *arg,
                                        thole_error *reterr)
{
    uint64_t left = filter->limit > 0 ? filter->limit : LIST_LIMIT;
    for (bool more = true; more && left > 0;) {
        uint64_t const wanted = left < LIST_PAGE_MAX ? left : LIST_PAGE_MAX;
        THOLE_TRY(read_poisoned_page(pg, filter, place, wanted, reterr));
        size_t const rows = call_rows(pg, 0);
        for (size_t row = 0; row < rows; row++)
            THOLE_TRY(give_poisoned(pg, row, each, arg, place, &left, reterr));
        more = rows == wanted;
    }
    return THOLE_OK;
}

thole_status query_store_poisoned(struct postgres *pg, const thole_poisoned_filter *filter,
                                  thole_poisoned_fn *each, void *arg, thole_error *reterr)
{
    struct poisoned_place place = {.since_ms = INT64_MAX}; /* in front of all */
    thole_slice const behind = filter->behind_instance;
    if (behind.len > THOLE_ID_BYTES_MAX)
        return thole_fail(reterr, THOLE_INVALID, "behind_instance is longer than any id");
    buf_init(&place.id, PLACE_BYTES_MAX);
    thole_status status = THOLE_OK;
    if (behind.len > 0) {
        place.since_ms = filter->behind_since_ms;
        place.execution = filter->behind_execution;
        place.activity_id = filter->behind_activity_id;
        status = keep_id(&place.id, behind, reterr);
    }
    if (status == THOLE_OK)
        status = read_poisoned_pages(pg, filter, &place, each, arg, reterr);
    buf_release(&place.id);
    return status;
}

/* ---- contents of queues ---- */

thole_status query_store_activities(struct postgres *pg, thole_slice instance, thole_activity_info_fn *each,
                                    void *arg, thole_error *reterr)
{
    call_begin(pg, "reading an instance's activities");
    call_text(pg, instance);
    call_int8(pg, ACTIVITIES_MAX);
    call_send(pg, STATEMENT_SHOW_ACTIVITIES);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        thole_activity_info const info = {.execution = call_cell_int8(pg, 0, row, 0),
                                          .activity_id = call_cell_int8(pg, 0, row, 1),
                                          .queue = call_cell_text(pg, 0, row, 2),
                                          .activity = call_cell_text(pg, 0, row, 3),
                                          .try_number = (uint32_t)call_cell_int8(pg, 0, row, 4),
                                          .worker = call_cell_text(pg, 0, row, 5),
                                          .silent_ms = call_cell_int8(pg, 0, row, 6),
                                          .outside = call_cell_int8(pg, 0, row, 7) != 0};
        THOLE_TRY(each(arg, &info));
    }
    return THOLE_OK;
}

thole_status query_store_set_aside(struct postgres *pg, thole_slice instance, thole_set_aside_fn *each,
                                   void *arg, thole_error *reterr)
{
    call_begin(pg, "reading which rows are set aside");
    call_text(pg, instance);
    call_int8(pg, LIST_SET_ASIDE_MAX);
    call_send(pg, STATEMENT_LIST_SET_ASIDE);
    THOLE_TRY(call_run(pg, reterr));
    for (size_t row = 0; row < call_rows(pg, 0); row++) {
        thole_set_aside_info const info = {.table = call_cell_text(pg, 0, row, 0),
                                           .execution = call_cell_int8(pg, 0, row, 1),
                                           .id = call_cell_int8(pg, 0, row, 2),
                                           .removal = call_cell_int8(pg, 0, row, 3) != 0,
                                           .column = call_cell_text(pg, 0, row, 4),
                                           .code = call_cell_text(pg, 0, row, 5),
                                           .reason = call_cell_text(pg, 0, row, 6),
                                           .since_ms = call_cell_int8(pg, 0, row, 7)};
        THOLE_TRY(each(arg, &info));
    }
    return THOLE_OK;
}

thole_status query_store_set_aside_total(struct postgres *pg, struct set_aside_total *ret,
                                         thole_error *reterr)
{
    *ret = (struct set_aside_total){.rows = 0};
    call_begin(pg, "counting which rows are set aside");
    call_send(pg, STATEMENT_COUNT_SET_ASIDE);
    THOLE_TRY(call_run(pg, reterr));
    if (call_rows(pg, 0) == 0)
        return THOLE_OK;
    thole_slice const column = call_cell_text(pg, 0, 0, 4);
    ret->rows = call_cell_int8(pg, 0, 0, 0);
    ret->instances = call_cell_int8(pg, 0, 0, 1);
    (void)snprintf(ret->first, sizeof ret->first, "%.*s of %.*s, column %.*s: %.*s",
                   THOLE_FMT(call_cell_text(pg, 0, 0, 3)), THOLE_FMT(call_cell_text(pg, 0, 0, 2)),
                   THOLE_FMT(column.len > 0 ? column : THOLE_STR("not known")),
                   THOLE_FMT(call_cell_text(pg, 0, 0, 5)));
    return THOLE_OK;
}

thole_status query_store_queue_activities(struct postgres *pg, thole_slice queue, struct arena *arena,
                                          struct queue_activity **ret, size_t *ret_len, thole_error *reterr)
{
    call_begin(pg, "counting activities in queues");
    call_text(pg, queue);
    call_send(pg, STATEMENT_QUEUE_ACTIVITIES);
    THOLE_TRY(call_run(pg, reterr));
    size_t const n = call_rows(pg, 0);
    struct queue_activity *const rows = arena_array(arena, n + 1, sizeof *rows);
    thole_status status = rows == NULL ? arena_status(arena) : THOLE_OK;
    for (size_t row = 0; row < n && status == THOLE_OK; row++) {
        rows[row].activities = call_cell_int8(pg, 0, row, 2);
        status = arena_dup(arena, call_cell_text(pg, 0, row, 0), &rows[row].queue);
        if (status == THOLE_OK)
            status = arena_dup(arena, call_cell_text(pg, 0, row, 1), &rows[row].activity);
    }
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "no room for what is in queues");
    *ret = rows;
    *ret_len = n;
    return THOLE_OK;
}

/* ---- queues ---- */

thole_status query_store_queues(struct postgres *pg, thole_slice queue, struct arena *arena,
                                struct queue_row **ret, size_t *ret_len, thole_error *reterr)
{
    call_begin(pg, "counting what is in queues");
    call_text(pg, queue);
    call_send(pg, STATEMENT_QUEUES);
    THOLE_TRY(call_run(pg, reterr));
    size_t const n = call_rows(pg, 0);
    struct queue_row *const rows = arena_array(arena, n + 1, sizeof *rows);
    thole_status status = rows == NULL ? arena_status(arena) : THOLE_OK;
    for (size_t row = 0; row < n && status == THOLE_OK; row++) {
        rows[row] = (struct queue_row){.activities = call_cell_int8(pg, 0, row, 2),
                                       .outside = call_cell_int8(pg, 0, row, 3),
                                       .poisoned = call_cell_int8(pg, 0, row, 4),
                                       .silent_ms = call_cell_int8(pg, 0, row, 5),
                                       .oldest_ms = call_cell_int8(pg, 0, row, 6)};
        status = arena_dup(arena, call_cell_text(pg, 0, row, 0), &rows[row].queue);
        if (status == THOLE_OK)
            status = arena_dup(arena, call_cell_text(pg, 0, row, 1), &rows[row].worker);
    }
    if (status != THOLE_OK)
        return thole_fail(reterr, status, "no room for what is in queues");
    *ret = rows;
    *ret_len = n;
    return THOLE_OK;
}
