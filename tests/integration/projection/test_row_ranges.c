/* Each column that holds a number takes all of the range of what is written there: range.h. */
#include "range.h"
#include "store_fixture.h"

enum {
    CAPPED = RANGE_RECORDED, /* the statement, or who makes the row, takes the largest that the column can */
    OWN = RANGE_KIND,        /* an engine's own, from a list or a hash: nothing outside says it */
};

static const struct {
    const char *column;
    int range;
} columns[] = {
    {"executions.ended_ms", RANGE_TIME_MS},
    {"executions.execution", RANGE_EXECUTION},
    {"executions.history_seq", RANGE_SEQUENCE},
    {"executions.p", RANGE_PARTITION},
    {"executions.started_ms", RANGE_TIME_MS},
    {"executions.status", OWN},
    {"executions.turns", RANGE_EVENT_ID},
    {"instances.blocked", OWN},
    {"instances.created_ms", RANGE_TIME_MS},
    {"instances.execution", RANGE_EXECUTION},
    {"instances.history_seq", RANGE_SEQUENCE},
    {"instances.p", RANGE_PARTITION},
    {"instances.status", OWN},
    {"instances.turns", RANGE_EVENT_ID},
    {"instances.updated_ms", RANGE_TIME_MS},
    {"instances.version", RANGE_VERSION},
    {"partitions.batches", OWN},
    {"partitions.epoch", RANGE_SEQUENCE},
    {"partitions.kept_mark", OWN},
    {"partitions.kept_seq", RANGE_SEQUENCE},
    {"partitions.later_mark", OWN},
    {"partitions.later_seq", RANGE_SEQUENCE},
    {"partitions.p", RANGE_PARTITION},
    {"partitions.projected_mark", OWN},
    {"partitions.projected_seq", RANGE_SEQUENCE},
    {"partitions.signed_mark", OWN},
    {"quarantine.activity_id", RANGE_EVENT_ID},
    {"quarantine.execution", RANGE_EXECUTION},
    {"quarantine.lost", RANGE_LOST},
    {"quarantine.p", RANGE_PARTITION},
    {"quarantine.since_ms", RANGE_TIME_MS},
    {"quarantine.try_number", RANGE_TRY},
    {"quarantine.until_ms", CAPPED},
    {"schema_migrations.number", OWN},
    {"set_aside.execution", RANGE_EXECUTION},
    {"set_aside.id", RANGE_EVENT_ID},
    {"set_aside.p", RANGE_PARTITION},
    {"set_aside.projected_seq", RANGE_SEQUENCE},
    {"timers.due_ms", CAPPED},
    {"timers.execution", RANGE_EXECUTION},
    {"timers.p", RANGE_PARTITION},
    {"timers.timer_id", RANGE_EVENT_ID},
    {"worker_queue.activity_id", RANGE_EVENT_ID},
    {"worker_queue.attempt", RANGE_ATTEMPT},
    {"worker_queue.execution", RANGE_EXECUTION},
    {"worker_queue.p", RANGE_PARTITION},
    {"worker_queue.try_number", RANGE_TRY},
    {"worker_queue.try_timeout_ms", CAPPED},
};

static int64_t most_of(const char *type, size_t len)
{
    if (len == strlen("bigint") && strncmp(type, "bigint", len) == 0)
        return INT64_MAX;
    return len == strlen("integer") && strncmp(type, "integer", len) == 0 ? INT32_MAX : INT16_MAX;
}

static void check_column(const char *column, size_t column_len, const char *type, size_t type_len)
{
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        if (strlen(columns[i].column) != column_len || strncmp(columns[i].column, column, column_len) != 0)
            continue;
        bool const fits = columns[i].range == CAPPED || columns[i].range == OWN ||
                          range_row((enum range)columns[i].range)->most <= (uint64_t)most_of(type, type_len);
        if (!fits)
            fprintf(stderr, "\n  %s is too narrow for %s\n", columns[i].column,
                    range_row((enum range)columns[i].range)->name);
        CU_ASSERT_TRUE(fits);
        return;
    }
    fprintf(stderr, "\n  no range is named here for %.*s\n", (int)column_len, column);
    CU_FAIL("a column without a range");
}

static void test_columns(void)
{
    size_t checked = 0;
    postgres_close(store_migrated("ranges"));
    const char *at = store_sql(
        "ranges",
        "SELECT string_agg(table_name || '.' || column_name || '=' || data_type, ' ' ORDER BY 1) FROM "
        "information_schema.columns WHERE table_schema = 'thole_ranges' AND "
        "data_type IN ('smallint', 'integer', 'bigint', 'numeric', 'real', 'double precision')");
    while (*at != '\0') {
        size_t const column_len = strcspn(at, "="), type_len = strcspn(at + column_len + 1, " ");
        check_column(at, column_len, at + column_len + 1, type_len);
        at += column_len + 1 + type_len;
        at += *at == ' ';
        checked++;
    }
    CU_ASSERT_EQUAL(checked, ARRAY_LEN(columns));
}

static const struct thole_test tests[] = {{"columns", test_columns}};

int main(void)
{
    return store_run("row ranges", tests, ARRAY_LEN(tests));
}
