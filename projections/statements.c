#include "statements.h"

/*
 * What all of them keep to:
 *  - Changes of many rows are one statement over arrays (unnest), and rows are locked in the order of their
 *    keys, so that no two of them can wait for each other in a circle.
 *  - Only the database's clock is written.
 *  - Plans are made once for each connection (generic), perhaps while a table is empty. So a plan must be
 * right for every size: keys are sorted, then each is looked up in the primary key.
 */

/* The keys of arrays $1..$3 in the order of the index, with their place in the arrays. */
#define KEYS_FROM(array, column)                                                                             \
    "(SELECT * FROM unnest($1::text[], $2::int8[], $3::int8[]" array ")"                                     \
    " WITH ORDINALITY AS u (instance, execution, id" column ", ord)"                                         \
    " ORDER BY u.instance COLLATE \"C\", u.execution, u.id) AS k"
#define KEYS KEYS_FROM("", "")
/* The same with the attempts of a worker's claims, and the condition that they still hold. */
#define CLAIMS KEYS_FROM(", $4::int8[]", ", attempt")
#define HELD " AND q.attempt = k.attempt AND q.worker = $5::text"

/*
 * q's primary key = k. The form with ANY leaves the planner one way only: for each k a descent into the
 * index. With a plain = it could also walk the whole index and look each row up among the keys, which costs
 * less while the table is empty, and a plan made then would stay for hours.
 */
#define SAME(id) " q.instance = ANY (ARRAY[k.instance]) AND q.execution = k.execution AND q." id " = k.id"

#define INSTANCE_COLUMNS                                                                                     \
    "i.instance, i.orchestration, i.execution, i.status::int8, i.created_ms, i.updated_ms, i.detail,"        \
    " i.p::int8,"                                                                                            \
    " (SELECT count(*) FROM worker_queue AS q WHERE q.instance = i.instance),"                               \
    " (SELECT count(*) FROM timers AS t WHERE t.instance = i.instance)"

/* The rows of arrays $2..$10: one for each instance, or for each execution of one. */
#define INSTANCE_ROWS                                                                                        \
    "unnest($2::text[], $3::text[], $4::int8[], $5::int4[], $6::int8[], $7::int8[], $8::text[], $9::int8[]," \
    " $10::int8[]) AS u (instance, orchestration, execution, status, created_ms, updated_ms, detail, turns," \
    " history_seq)"

const struct statement_text statement_texts[STATEMENTS] = {
    [STATEMENT_NOW] = {"now", "i", "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"},
    [STATEMENT_BEGIN] = {"begin", "", "BEGIN"},
    [STATEMENT_COMMIT] = {"commit", "", "COMMIT"},
    [STATEMENT_ROLLBACK] = {"rollback", "", "ROLLBACK"},
    /* until the end of the transaction */
    [STATEMENT_SET] = {"set", "t", "SELECT set_config($1::text, $2::text, true)"},

    [STATEMENT_PARTITION_OPEN] =
        {"partition_open", "i",
         "INSERT INTO partitions AS q (p, epoch) VALUES ($1::int4, $2::int8)"
         " ON CONFLICT (p) DO UPDATE SET epoch = excluded.epoch, updated_at = clock_timestamp()"
         " WHERE q.epoch <= excluded.epoch RETURNING q.projected_seq"},
    /* Fails with division_by_zero, and the whole pipeline with it, unless the epoch is the partition's. */
    [STATEMENT_PARTITION_MOVE] =
        {"partition_move", "i",
         "WITH moved AS (UPDATE partitions SET projected_seq = greatest(projected_seq, $3::int8),"
         " updated_at = clock_timestamp() WHERE p = $1::int4 AND epoch = $2::int8 RETURNING 1)"
         " SELECT 1 / count(*) FROM moved"},
    [STATEMENT_PARTITION_RESET] =
        {"partition_reset", "i",
         "WITH moved AS (UPDATE partitions SET projected_seq = 0, updated_at = clock_timestamp()"
         " WHERE p = $1::int4 AND epoch = $2::int8 RETURNING 1) SELECT 1 / count(*) FROM moved"},
    [STATEMENT_ACTIVITIES_RESET] = {"activities_reset", "", "DELETE FROM worker_queue WHERE p = $1::int4"},
    [STATEMENT_TIMERS_RESET] = {"timers_reset", "", "DELETE FROM timers WHERE p = $1::int4"},
    [STATEMENT_INSTANCES_RESET] = {"instances_reset", "", "DELETE FROM instances WHERE p = $1::int4"},
    [STATEMENT_EXECUTIONS_RESET] = {"executions_reset", "", "DELETE FROM executions WHERE p = $1::int4"},

    [STATEMENT_ACTIVITIES_ADD] =
        {"activities_add", "",
         "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity)"
         " SELECT u.instance, u.execution, u.id, $6::int4, u.queue, u.activity"
         " FROM unnest($1::text[], $2::int8[], $3::int8[], $4::text[], $5::text[])"
         " AS u (instance, execution, id, queue, activity)"
         " ORDER BY u.instance COLLATE \"C\", u.execution, u.id"
         " ON CONFLICT (instance, execution, activity_id) DO NOTHING"},
    [STATEMENT_ACTIVITIES_REMOVE] = {"activities_remove", "",
                                     "DELETE FROM worker_queue AS q USING " KEYS
                                     " WHERE" SAME("activity_id")},
    [STATEMENT_TIMERS_ADD] =
        {"timers_add", "",
         "INSERT INTO timers (instance, execution, timer_id, p, due_ms)"
         " SELECT u.instance, u.execution, u.id, $5::int4, u.due_ms"
         " FROM unnest($1::text[], $2::int8[], $3::int8[], $4::int8[]) AS u (instance, execution, id, due_ms)"
         " ORDER BY u.instance COLLATE \"C\", u.execution, u.id"
         " ON CONFLICT (instance, execution, timer_id) DO NOTHING"},
    [STATEMENT_TIMERS_REMOVE] = {"timers_remove", "",
                                 "DELETE FROM timers AS q USING " KEYS " WHERE" SAME("timer_id")},
    [STATEMENT_INSTANCES] =
        {"instances", "",
         "INSERT INTO instances AS i (instance, p, orchestration, execution, status, created_ms, updated_ms,"
         " detail, turns, history_seq)"
         " SELECT DISTINCT ON (u.instance COLLATE \"C\") u.instance, $1::int4, u.orchestration, u.execution,"
         " u.status::int2, CASE u.created_ms WHEN 0 THEN u.updated_ms ELSE u.created_ms END, u.updated_ms,"
         " u.detail, u.turns, u.history_seq FROM " INSTANCE_ROWS
         " ORDER BY u.instance COLLATE \"C\", u.execution DESC, u.history_seq DESC"
         " ON CONFLICT (instance) DO UPDATE SET"
         " orchestration = CASE excluded.orchestration WHEN '' THEN i.orchestration"
         " ELSE excluded.orchestration END,"
         " execution = excluded.execution, status = excluded.status,"
         " created_ms = least(i.created_ms, excluded.created_ms), updated_ms = excluded.updated_ms,"
         " detail = excluded.detail, turns = excluded.turns, history_seq = excluded.history_seq"
         " WHERE i.history_seq <= excluded.history_seq"},
    [STATEMENT_EXECUTIONS] =
        {"executions", "",
         "INSERT INTO executions AS e (instance, execution, p, status, started_ms, ended_ms, turns,"
         " history_seq)"
         " SELECT DISTINCT ON (u.instance COLLATE \"C\", u.execution) u.instance, u.execution, $1::int4,"
         " u.status::int2, CASE u.created_ms WHEN 0 THEN u.updated_ms ELSE u.created_ms END,"
         " CASE WHEN u.status IN (4, 5, 6) THEN u.updated_ms END, u.turns, u.history_seq FROM " INSTANCE_ROWS
         " ORDER BY u.instance COLLATE \"C\", u.execution, u.history_seq DESC"
         " ON CONFLICT (instance, execution) DO UPDATE SET status = excluded.status,"
         " ended_ms = excluded.ended_ms, turns = excluded.turns, history_seq = excluded.history_seq"
         " WHERE e.history_seq <= excluded.history_seq"},

    /* Those due, and the one that is due next after them. */
    [STATEMENT_TIMERS_DUE] =
        {"timers_due", "tiii",
         "(SELECT instance, execution, timer_id, due_ms FROM timers WHERE p = $1::int4 AND due_ms < $2::int8"
         " ORDER BY due_ms LIMIT $3::int8) UNION ALL"
         " (SELECT instance, execution, timer_id, due_ms FROM timers WHERE p = $1::int4 AND due_ms >= "
         "$2::int8"
         " ORDER BY due_ms LIMIT 1) ORDER BY due_ms"},
    [STATEMENT_LIVE_BLOCKED] =
        {"live_blocked", "ttiiiitii",
         "SELECT instance, orchestration, execution, status::int8, created_ms, updated_ms, detail, turns,"
         " history_seq FROM instances WHERE p = $1::int4 AND status IN (2, 3) ORDER BY created_ms, instance"},
    [STATEMENT_LIVE_ORCHESTRATIONS] =
        {"live_orchestrations", "ti",
         "SELECT orchestration, count(*) FROM instances WHERE p = $1::int4 AND status NOT IN (4, 5, 6)"
         " GROUP BY orchestration ORDER BY orchestration"},
    [STATEMENT_LIVE_ACTIVITIES] = {"live_activities", "i",
                                   "SELECT count(*) FROM worker_queue WHERE p = $1::int4"},
    /*
     * Takes what it finds: a row is an orphan again only after the same time, so that rows which nobody can
     * run do not hide those behind them. A row that is locked is being worked on.
     */
    [STATEMENT_ORPHANS] =
        {"orphans", "tiitt",
         "UPDATE worker_queue AS q SET swept_at = clock_timestamp() WHERE ctid = ANY (ARRAY("
         " SELECT o.ctid FROM worker_queue AS o WHERE o.p = $1::int4"
         " AND o.created_at < statement_timestamp() - $2::int8 * interval '1 millisecond'"
         " AND greatest(o.created_at, o.claimed_at, o.renewed_at, o.swept_at)"
         " < statement_timestamp() - $2::int8 * interval '1 millisecond'"
         " ORDER BY o.created_at LIMIT $3::int8 FOR UPDATE SKIP LOCKED))"
         " RETURNING q.instance, q.execution, q.activity_id, q.queue, q.activity"},

    [STATEMENT_CLAIM] = {"claim", "ii",
                         "UPDATE worker_queue AS q SET attempt = q.attempt + 1, worker = $4::text,"
                         " claimed_at = clock_timestamp(), renewed_at = NULL"
                         " FROM " KEYS " WHERE" SAME("activity_id") " RETURNING k.ord, q.attempt"},
    [STATEMENT_RENEW] = {"renew", "ii",
                         "UPDATE worker_queue AS q SET renewed_at = clock_timestamp()"
                         " FROM " CLAIMS " WHERE" SAME("activity_id") HELD " RETURNING k.ord, q.attempt"},
    [STATEMENT_COMPLETE] = {"complete", "ii",
                            "DELETE FROM worker_queue AS q USING " CLAIMS " WHERE" SAME("activity_id") HELD
                            " RETURNING k.ord, q.attempt"},
    [STATEMENT_RELEASE] =
        {"release", "ii",
         "UPDATE worker_queue AS q SET worker = NULL, claimed_at = NULL, renewed_at = clock_timestamp()"
         " FROM " CLAIMS " WHERE" SAME("activity_id") HELD " RETURNING k.ord, q.attempt"},
    /* Which of the keys have a row? */
    [STATEMENT_LOOK] = {"look", "ii",
                        "SELECT k.ord, q.attempt FROM worker_queue AS q, " KEYS " WHERE" SAME("activity_id")},

    [STATEMENT_SHOW] = {"show", "ttiiiitiii",
                        "SELECT " INSTANCE_COLUMNS " FROM instances AS i WHERE i.instance = $1::text"},
    /* The page after ($4, $5); planned for the filters at hand, see query_store.c. */
    [STATEMENT_LIST] =
        {"list", "ttiiiitiii",
         "SELECT " INSTANCE_COLUMNS " FROM instances AS i"
         " WHERE ($1::int4 = 0 OR i.status = $1::int4) AND ($2::text = '' OR i.orchestration = $2::text)"
         " AND ($3::text = '' OR i.instance LIKE $3::text)"
         " AND i.created_ms <= $4::int8 AND (i.created_ms < $4::int8 OR i.instance > $5::text)"
         " ORDER BY i.created_ms DESC, i.instance LIMIT $6::int8"},
};
