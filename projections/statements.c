#include "statements.h"
#include "statement_parts.h"

/*
 * Rules that all statements keep:
 *  - A change of many rows is one statement over arrays (unnest). The caller has sorted the arrays by the
 *    rows' keys (row_order.h), and rows are locked in that order.
 *  - All unnest() are in one SELECT list, where they advance together, row by row. In FROM the rows of each
 *    would be stored first: 16 KiB an array, which malloc gives back to the system after each statement.
 *  - Only the database's clock is written.
 *  - Plans are made once for each connection (generic), perhaps while a table is empty. So a plan must be
 *    right for every size: rows are looked up key by key in the primary key.
 */

const struct statement_text statement_texts[STATEMENTS] = {
    [STATEMENT_NOW] = {"now", "i", "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8"},
    [STATEMENT_DATABASE_BYTES] = {"database_bytes", "i", "SELECT pg_database_size(current_database())"},
    /* Of the roles worker and reader of this namespace, whose transactions are older than $1 ms, and which
     * sessions of this user wait for since $2 ms. Found first, then ended. */
    [STATEMENT_BLOCKERS_END] =
        {"blockers_end", "tttii",
         "WITH k AS MATERIALIZED (SELECT b.pid, b.usename, b.client_addr, b.application_name,"
         " clock_timestamp() - b.xact_start AS held FROM (SELECT DISTINCT "
         "unnest(pg_catalog.pg_blocking_pids(w.pid))"
         " AS pid FROM pg_catalog.pg_stat_activity AS w WHERE w.usename = current_user"
         " AND w.datname = current_database() AND w.wait_event_type = 'Lock'"
         " AND w.query_start < clock_timestamp() - $2::int8 * interval '1 millisecond') AS p"
         " JOIN pg_catalog.pg_stat_activity AS b USING (pid) WHERE b.usename <> current_user AND b.usename IN"
         " (current_schema() || '_worker', current_schema() || '_reader')"
         " AND pg_catalog.pg_has_role(current_user, b.usesysid, 'USAGE')"
         " AND b.xact_start < clock_timestamp() - $1::int8 * interval '1 millisecond' LIMIT $3::int8)"
         " SELECT k.usename::text, coalesce(pg_catalog.host(k.client_addr), ''),"
         " left(k.application_name, 64), k.pid::int8, floor(extract(epoch FROM k.held) * 1000)::int8"
         " FROM k WHERE pg_catalog.pg_terminate_backend(k.pid)"},
    [STATEMENT_BEGIN] = {"begin", "", "BEGIN"},
    [STATEMENT_COMMIT] = {"commit", "", "COMMIT"},
    [STATEMENT_ROLLBACK] = {"rollback", "", "ROLLBACK"},
    [STATEMENT_SAVEPOINT] = {"savepoint", "", "SAVEPOINT rows"},
    [STATEMENT_SAVEPOINT_RELEASE] = {"savepoint_release", "", "RELEASE SAVEPOINT rows"},
    [STATEMENT_SAVEPOINT_UNDO] = {"savepoint_undo", "", "ROLLBACK TO SAVEPOINT rows"},
    /* until the end of the transaction */
    [STATEMENT_SET] = {"set", "t", "SELECT set_config($1::text, $2::text, true)"},

    [STATEMENT_INCARNATION] = {"incarnation", "",
                               "INSERT INTO incarnation DEFAULT VALUES ON CONFLICT (one) DO NOTHING"},
    [STATEMENT_INCARNATION_ID] = {"incarnation_id", "t", "SELECT id::text FROM incarnation"},
    [STATEMENT_PARTITION_COMPLETE] =
        {"partition_complete", "",
         "UPDATE partitions AS q SET incarnation = i.id FROM incarnation AS i WHERE q.p = $1::int4"
         " AND q.epoch = $2::int8 AND q.batches >= $3::int8 AND q.incarnation IS DISTINCT FROM i.id"},
    [STATEMENT_PARTITION_OPEN] = {"partition_open", "iiii",
                                  "INSERT INTO partitions AS q (p, epoch) VALUES ($1::int4, $2::int8)"
                                  " ON CONFLICT (p) DO UPDATE SET epoch = greatest(q.epoch, excluded.epoch),"
                                  " incarnation = CASE WHEN q.epoch > excluded.epoch THEN q.incarnation END,"
                                  " updated_at = clock_timestamp()"
                                  " RETURNING q.projected_seq, q.projected_mark, q.epoch, q.batches"},
    /* The mark that the rows have, after $3 was written where they had none. */
    [STATEMENT_PARTITION_SIGN] = {"partition_sign", "i",
                                  "UPDATE partitions SET signed_mark = CASE WHEN signed_mark = 0 THEN"
                                  " $3::int8 ELSE signed_mark END"
                                  " WHERE p = $1::int4 AND epoch = $2::int8 RETURNING signed_mark"},
    /* Partitions $1 move to $6, $7, with one batch more. Fails with division_by_zero, and the whole pipeline
     * with it, unless all of their rows are as $2..$5 say. */
    [STATEMENT_PARTITIONS_MOVE] =
        {"partitions_move", "i",
         "WITH moved AS (UPDATE partitions AS q SET projected_seq = k.seq, projected_mark = k.mark,"
         " batches = q.batches + 1, updated_at = clock_timestamp()"
         " FROM (SELECT unnest($6::int8[]) AS seq, unnest($7::int8[]) AS mark, " OWNED_COLUMNS ") AS k"
         " WHERE q.p = ANY (ARRAY[k.p]) AND" AS_OWNED " RETURNING 1)"
         " SELECT (1 / CASE WHEN count(*) = cardinality($1::int4[]) THEN 1 ELSE 0 END)::int8 FROM moved"},
    /* Which of partitions $1 differ from $2..$5, or, where $6 says so, are not complete; epoch 0: no row. */
    [STATEMENT_PARTITIONS_LOOK] =
        {"partitions_look", "iiiiii",
         "SELECT k.p::int8, coalesce(q.epoch, 0), coalesce(q.projected_seq, 0),"
         " coalesce(q.projected_mark, 0), coalesce(q.batches, 0),"
         " CASE WHEN q.incarnation = i.id THEN 1 ELSE 0 END::int8"
         " FROM (SELECT unnest($6::bool[]) AS complete, " OWNED_COLUMNS ") AS k"
         " LEFT JOIN partitions AS q ON q.p = ANY (ARRAY[k.p]) LEFT JOIN incarnation AS i ON true"
         " WHERE (" AS_OWNED " AND (q.incarnation = i.id OR NOT k.complete)) IS NOT TRUE"},
    [STATEMENT_PARTITION_RESET] =
        {"partition_reset", "ii",
         "WITH moved AS (UPDATE partitions SET projected_seq = 0, projected_mark = 0, incarnation = NULL,"
         " kept_seq = 0, kept_mark = 0, later_seq = 0, later_mark = 0, signed_mark = 0, batches = batches + "
         "1,"
         " updated_at = clock_timestamp()"
         " WHERE p = $1::int4 AND epoch = $2::int8 RETURNING batches)"
         " SELECT 1 / count(*), max(batches) FROM moved"},
    [STATEMENT_ACTIVITIES_RESET] = {"activities_reset", "", "DELETE FROM worker_queue WHERE p = $1::int4"},
    [STATEMENT_TIMERS_RESET] = {"timers_reset", "", "DELETE FROM timers WHERE p = $1::int4"},
    [STATEMENT_INSTANCES_RESET] = {"instances_reset", "", "DELETE FROM instances WHERE p = $1::int4"},
    [STATEMENT_EXECUTIONS_RESET] = {"executions_reset", "", "DELETE FROM executions WHERE p = $1::int4"},
    [STATEMENT_QUARANTINE_RESET] = {"quarantine_reset", "", "DELETE FROM quarantine WHERE p = $1::int4"},
    [STATEMENT_ASIDE_RESET] = {"aside_reset", "", "DELETE FROM set_aside WHERE p = $1::int4"},

    /* Rows that are set aside. */
    [STATEMENT_ASIDE_COUNT] = {"aside_count", "ii",
                               "SELECT q.p::int8, count(*) FROM set_aside AS q WHERE q.p = ANY ($1::int4[])"
                               " GROUP BY q.p"},
    [STATEMENT_ASIDE_ADD] =
        {"aside_add", "",
         "INSERT INTO set_aside (instance, row_table, execution, id, p, removal, projected_seq, row_column,"
         " code, reason) SELECT u.instance, u.row_table, u.execution, u.id, $1::int4, u.removal, $2::int8,"
         " u.row_column, u.code, u.reason FROM (SELECT unnest($3::text[]) AS instance,"
         " unnest($4::text[]) AS row_table, unnest($5::int8[]) AS execution, unnest($6::int8[]) AS id,"
         " unnest($7::bool[]) AS removal, unnest($8::text[]) AS row_column, unnest($9::text[]) AS code,"
         " unnest($10::text[]) AS reason) AS u"
         " ON CONFLICT (instance, row_table, execution, id) DO UPDATE SET p = excluded.p,"
         " removal = excluded.removal, projected_seq = excluded.projected_seq,"
         " row_column = excluded.row_column, code = excluded.code, reason = excluded.reason"},
    /* Of these keys; where $5 is true, of all executions of the instance up to that one. */
    [STATEMENT_ASIDE_CLEAR] =
        {"aside_clear", "",
         "DELETE FROM set_aside AS q USING (SELECT unnest($1::text[]) AS instance,"
         " unnest($2::text[]) AS row_table, unnest($3::int8[]) AS execution, unnest($4::int8[]) AS id,"
         " unnest($5::bool[]) AS whole) AS k WHERE q.instance = ANY (ARRAY[k.instance])"
         " AND q.row_table = k.row_table AND CASE WHEN k.whole THEN q.execution <= k.execution"
         " ELSE q.execution = k.execution AND q.id = k.id END"},
    [STATEMENT_ASIDE_FORGET] = {"aside_forget", "", "DELETE FROM set_aside WHERE instance = $1::text"},
    /* Of a constraint of table $2, or of a domain that columns of it have. */
    [STATEMENT_CONSTRAINT_COLUMNS] =
        {"constraint_columns", "t",
         "SELECT coalesce(string_agg(DISTINCT a.attname::text, ', ' ORDER BY a.attname::text), '')"
         " FROM pg_catalog.pg_constraint AS c"
         " JOIN pg_catalog.pg_attribute AS a ON a.attrelid = $2::text::regclass AND a.attnum > 0"
         " AND NOT a.attisdropped AND (c.conrelid = a.attrelid AND a.attnum = ANY (c.conkey)"
         " OR c.contypid = a.atttypid) WHERE c.conname = $1::text::name"},

    /* Rows of a later incarnation of the id, or of a later record, stay. */
    [STATEMENT_ACTIVITIES_DELETED] = {"activities_deleted", "",
                                      "DELETE FROM worker_queue AS q USING " DELETED("execution")},
    [STATEMENT_TIMERS_DELETED] = {"timers_deleted", "",
                                  "DELETE FROM timers AS q USING " DELETED("execution")},
    [STATEMENT_QUARANTINE_DELETED] = {"quarantine_deleted", "",
                                      "DELETE FROM quarantine AS q USING " DELETED("execution")},
    [STATEMENT_INSTANCES_DELETED] = {"instances_deleted", "",
                                     "DELETE FROM instances AS q USING " DELETED("history_seq")},
    [STATEMENT_EXECUTIONS_DELETED] = {"executions_deleted", "",
                                      "DELETE FROM executions AS q USING " DELETED("history_seq")},
    /* Of instance $1 the executions above $2 up to $3; $3 0: none. */
    [STATEMENT_EXECUTIONS_PRUNED] =
        {"executions_pruned", "",
         "DELETE FROM executions AS q USING (SELECT unnest($1::text[]) AS instance,"
         " unnest($2::int8[]) AS above, unnest($3::int8[]) AS upto) AS k"
         " WHERE q.instance = ANY (ARRAY[k.instance]) AND q.execution > k.above AND q.execution <= k.upto"},

    /*
     * $11: 0 = first tries, 1 = later ones. Those are added when what is obsolete has been removed, so that
     * they take the place of the try before; the others before anything is locked.
     */
    [STATEMENT_ACTIVITIES_ADD] =
        {"activities_add", "",
         "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, try_number,"
         " try_timeout_ms, details, digest)"
         " SELECT u.instance, u.execution, u.activity_id, u.p, u.queue, u.activity, greatest(u.try_number, "
         "1),"
         " u.try_timeout_ms, u.details, nullif(u.digest, '')"
         " FROM (SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS execution,"
         " unnest($3::int8[]) AS activity_id, unnest($4::text[]) AS queue,"
         " unnest($5::text[]) AS activity, unnest($6::int4[]) AS try_number,"
         " unnest($7::int8[]) AS try_timeout_ms, unnest($8::bytea[]) AS details,"
         " unnest($9::bytea[]) AS digest, unnest($10::int4[]) AS p) AS u WHERE (u.try_number > 1) = "
         "($11::int4 = 1)"
         " ON CONFLICT (instance, execution, activity_id) DO NOTHING"},
    /* Rows of the tries of $4 and older ones. Answers $5 of those that a worker had; of the others 0. */
    [STATEMENT_ACTIVITIES_REMOVE] =
        {"activities_remove", "i",
         "DELETE FROM worker_queue AS q USING (SELECT unnest($1::text[]) AS instance,"
         " unnest($2::int8[]) AS execution, unnest($3::int8[]) AS id, unnest($4::int4[]) AS try_number,"
         " unnest($5::int4[]) AS place) AS k"
         " WHERE" SAME("activity_id") " AND q.try_number <= k.try_number"
                                      " RETURNING CASE WHEN q.worker IS NULL THEN 0 ELSE k.place END::int8"},
    [STATEMENT_TIMERS_ADD] =
        {"timers_add", "",
         "INSERT INTO timers AS t (instance, execution, timer_id, p, due_ms)"
         " SELECT u.instance, u.execution, u.timer_id, u.p, u.due_ms"
         " FROM (SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS execution,"
         " unnest($3::int8[]) AS timer_id, unnest($4::int8[]) AS due_ms, unnest($5::int4[]) AS p) AS u"
         " ON CONFLICT (instance, execution, timer_id) DO UPDATE SET due_ms = excluded.due_ms"
         " WHERE t.due_ms <> excluded.due_ms"},
    [STATEMENT_TIMERS_REMOVE] = {"timers_remove", "",
                                 "DELETE FROM timers AS q USING " TIMER_KEYS " WHERE" SAME("timer_id")},
    [STATEMENT_QUARANTINE_ADD] =
        {"quarantine_add", "",
         "INSERT INTO quarantine (instance, execution, activity_id, p, queue, activity, try_number, lost,"
         " worker, reason, since_ms, until_ms)"
         " SELECT u.instance, u.execution, u.activity_id, u.p, u.queue, u.activity, u.try_number, u.lost, "
         "u.worker,"
         " u.reason, u.since_ms, u.until_ms"
         " FROM (SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS execution,"
         " unnest($3::int8[]) AS activity_id, unnest($4::text[]) AS queue,"
         " unnest($5::text[]) AS activity, unnest($6::int4[]) AS try_number,"
         " unnest($7::int4[]) AS lost, unnest($8::text[]) AS worker,"
         " unnest($9::text[]) AS reason, unnest($10::int8[]) AS since_ms,"
         " unnest($11::int8[]) AS until_ms, unnest($12::int4[]) AS p) AS u"
         " ON CONFLICT (instance, execution, activity_id) DO UPDATE SET queue = excluded.queue,"
         " activity = excluded.activity, try_number = excluded.try_number, lost = excluded.lost,"
         " worker = excluded.worker, reason = excluded.reason, since_ms = excluded.since_ms,"
         " until_ms = excluded.until_ms"},
    [STATEMENT_QUARANTINE_REMOVE] = {"quarantine_remove", "",
                                     "DELETE FROM quarantine AS q USING " TIMER_KEYS
                                     " WHERE" SAME("activity_id")},
    /* No instance twice, as one statement changes no row twice: see instance_rows.c. */
    [STATEMENT_INSTANCES] =
        {"instances", "",
         "INSERT INTO instances AS i (instance, p, orchestration, execution, status, created_ms, updated_ms,"
         " detail, turns, history_seq, version, custom_status, parent, blocked)"
         " SELECT u.instance, u.p, u.orchestration, u.execution, u.status::int2, u.created_ms, u.updated_ms,"
         " u.detail, u.turns, u.history_seq, u.version, CASE WHEN u.custom_set THEN u.custom_status END,"
         " u.parent, u.blocked::int2"
         " FROM (SELECT unnest($1::int4[]) AS p, unnest($2::text[]) AS instance,"
         " unnest($3::text[]) AS orchestration, unnest($4::int8[]) AS execution,"
         " unnest($5::int4[]) AS status, unnest($6::int8[]) AS created_ms,"
         " unnest($7::int8[]) AS updated_ms, unnest($8::text[]) AS detail,"
         " unnest($9::int8[]) AS turns, unnest($10::int8[]) AS history_seq,"
         " unnest($11::int4[]) AS version, unnest($12::bool[]) AS custom_set,"
         " unnest($13::bytea[]) AS custom_status, unnest($14::text[]) AS parent,"
         " unnest($15::int4[]) AS blocked) AS u"
         " ON CONFLICT (instance) DO UPDATE SET"
         " orchestration = CASE excluded.orchestration WHEN '' THEN i.orchestration"
         " ELSE excluded.orchestration END,"
         " execution = excluded.execution, status = excluded.status,"
         " created_ms = CASE WHEN i.execution = 0 AND excluded.execution > 0 THEN excluded.created_ms"
         " ELSE least(i.created_ms, excluded.created_ms) END, updated_ms = excluded.updated_ms,"
         " detail = excluded.detail, blocked = excluded.blocked, turns = excluded.turns, history_seq = "
         "excluded.history_seq,"
         " version = CASE excluded.version WHEN 0 THEN i.version ELSE excluded.version END,"
         " custom_status = coalesce(excluded.custom_status, i.custom_status),"
         " parent = CASE excluded.parent WHEN '' THEN i.parent ELSE excluded.parent END"
         " WHERE i.history_seq <= excluded.history_seq"},
    /* Of executions that begin or end, none twice: see instance_rows.c. */
    [STATEMENT_EXECUTIONS] =
        {"executions", "",
         "INSERT INTO executions AS e (instance, execution, p, status, started_ms, ended_ms, turns,"
         " history_seq)"
         " SELECT u.instance, u.execution, u.p,"
         " u.status::int2,"
         " coalesce(nullif(u.started_ms, 0), (SELECT i.created_ms FROM instances AS i"
         " WHERE i.instance = u.instance), u.ended_ms), nullif(u.ended_ms, 0), u.turns, u.history_seq"
         " FROM (SELECT unnest($1::int4[]) AS p, unnest($2::text[]) AS instance,"
         " unnest($3::int8[]) AS execution, unnest($4::int4[]) AS status,"
         " unnest($5::int8[]) AS started_ms, unnest($6::int8[]) AS ended_ms,"
         " unnest($7::int8[]) AS turns, unnest($8::int8[]) AS history_seq) AS u"
         " ON CONFLICT (instance, execution) DO UPDATE SET status = excluded.status,"
         " ended_ms = excluded.ended_ms, turns = excluded.turns, history_seq = excluded.history_seq"
         " WHERE e.history_seq <= excluded.history_seq"},

    /* Those due, and the one that is due next after them. */
    [STATEMENT_TIMERS_DUE] =
        {"timers_due", "tiii",
         "(SELECT instance, execution, timer_id, due_ms FROM timers WHERE p = $1::int4 AND due_ms < $2::int8"
         " AND " AN_ID " ORDER BY due_ms LIMIT $3::int8) UNION ALL"
         " (SELECT instance, execution, timer_id, due_ms FROM timers WHERE p = $1::int4 AND due_ms >= "
         "$2::int8"
         " AND " AN_ID " ORDER BY due_ms LIMIT 1) ORDER BY due_ms"},
    /* 9: continued as new without a next execution. Not those of execution 0. */
    [STATEMENT_LIVE_BLOCKED] =
        {"live_blocked", "ttiiiitiii",
         "SELECT instance, orchestration, execution, status::int8, created_ms, updated_ms, detail, turns,"
         " history_seq, version::int8 FROM instances WHERE p = $1::int4 AND status IN (2, 3, 9)"
         " AND execution > 0 AND " AN_ID " ORDER BY created_ms, instance"},
    [STATEMENT_LIVE_ORCHESTRATIONS] =
        {"live_orchestrations", "ti",
         "SELECT orchestration || CASE WHEN version > 1 THEN '@' || version ELSE '' END AS name, count(*)"
         " FROM instances WHERE p = $1::int4 AND status NOT IN " ENDED " AND orchestration <> ''"
         " AND " AN_ID " GROUP BY name ORDER BY name"},
    [STATEMENT_LIVE_ACTIVITIES] = {"live_activities", "i",
                                   "SELECT count(*) FROM worker_queue WHERE p = $1::int4"},
    /*
      * Takes the rows that it finds: a row is an orphan again only after the same time, so that rows which no
      * worker can run do not hide later ones. A locked row is being worked on, one that is completed later
      * needs no worker, and a shelved one needs no message before a worker knows it.
      */
    [STATEMENT_ORPHANS] =
        {"orphans", "tiittiib",
         "UPDATE worker_queue AS q SET swept_at = clock_timestamp() WHERE ctid = ANY (ARRAY("
         " SELECT o.ctid FROM worker_queue AS o WHERE o.p = $1::int4 AND NOT o.later"
         " AND o.shelved_at IS NULL AND" NOT_OLDER
         " AND o.created_at < statement_timestamp() - $2::int8 * interval '1 millisecond'"
         " AND greatest(o.created_at, o.claimed_at, o.renewed_at, o.swept_at)"
         " < statement_timestamp() - $2::int8 * interval '1 millisecond'"
         " ORDER BY o.created_at LIMIT $3::int8 OFFSET $6::int8 FOR UPDATE SKIP LOCKED))"
         " RETURNING q.instance, q.execution, q.activity_id, q.queue, q.activity, q.try_number::int8,"
         " q.try_timeout_ms, q.digest"},
    /* Which names no worker knew of those whose activities are shelved, in partitions $1, with their numbers.
     */
    [STATEMENT_SHELVED] = {"shelved", "itti",
                           "SELECT q.p::int8, q.queue, q.activity, count(*) FROM worker_queue AS q"
                           " WHERE q.p = ANY ($1::int4[]) AND q.shelved_at IS NOT NULL AND NOT q.later"
                           " GROUP BY q.p, q.queue, q.activity ORDER BY 1, 2, 3 LIMIT $2::int8"},
    /* Of the names $6, $7 of partition $1, shelved for $2: they are orphans after the usual time, should this
     * engine not publish their messages. */
    [STATEMENT_UNSHELVE] =
        {"unshelve", "tiittiib",
         "UPDATE worker_queue AS q SET shelved_at = NULL, swept_at = clock_timestamp() WHERE ctid = ANY "
         "(ARRAY("
         " SELECT o.ctid FROM worker_queue AS o WHERE o.p = $1::int4 AND o.shelved_at IS NOT NULL"
         " AND NOT o.later AND" NOT_OLDER
         " AND o.shelved_at <= statement_timestamp() - $2::int8 * interval '1 millisecond'"
         " AND (o.queue, o.activity) IN (SELECT unnest($6::text[]), unnest($7::text[]))"
         " ORDER BY o.created_at LIMIT $3::int8 FOR UPDATE SKIP LOCKED))"
         " RETURNING q.instance, q.execution, q.activity_id, q.queue, q.activity, q.try_number::int8,"
         " q.try_timeout_ms, q.digest"},
    /* Milliseconds until a row can be an orphan; -1: there is none that could. Of those that are younger than
     * $2 the oldest is found by the index. */
    [STATEMENT_NEXT_ORPHAN] =
        {"next_orphan", "i",
         "SELECT coalesce(max(greatest(0, ceil(extract(epoch FROM n.heard - clock_timestamp()) * 1000)"
         " + $2::int8))::int8, -1) FROM (SELECT least("
         "(SELECT min(greatest(q.created_at, q.claimed_at, q.renewed_at, q.swept_at)) FROM worker_queue AS q"
         " WHERE q.p = $1::int4 AND NOT q.later AND q.shelved_at IS NULL"
         " AND q.created_at < statement_timestamp() - $2::int8 * interval '1 millisecond'),"
         " (SELECT q.created_at FROM worker_queue AS q WHERE q.p = $1::int4 AND NOT q.later"
         " AND q.shelved_at IS NULL AND q.created_at >= statement_timestamp() - $2::int8 * interval '1 "
         "millisecond'"
         " ORDER BY q.created_at LIMIT 1)) AS heard) AS n WHERE n.heard IS NOT NULL"},
    /* Milliseconds that the oldest row without a lease has been there; no row: there is none. */
    [STATEMENT_OLDEST_WAITING] =
        {"oldest_waiting", "i",
         "SELECT greatest(0, floor(extract(epoch FROM clock_timestamp() - q.created_at) * 1000))::int8"
         " FROM worker_queue AS q WHERE q.p = $1::int4 AND NOT q.later AND " FREE
         " ORDER BY q.created_at LIMIT 1"},
    /* Milliseconds to the next deadline that there is, or that a claim could make; -1: none. */
    [STATEMENT_NEXT_DEADLINE] =
        {"next_deadline", "i",
         "SELECT coalesce(least("
         "(SELECT " DEADLINE_LEFT " FROM worker_queue AS q WHERE q.p = $1::int4 AND q.deadline_at IS NOT NULL"
         " ORDER BY q.deadline_at LIMIT 1),"
         " (SELECT q.try_timeout_ms FROM worker_queue AS q WHERE q.p = $1::int4 AND q.deadline_at IS NULL"
         " AND q.try_timeout_ms > 0 ORDER BY q.try_timeout_ms LIMIT 1)), -1)"},
    /* A row that is locked is being completed. */
    [STATEMENT_EXPIRE] =
        {"expire", "tiiiiib",
         "DELETE FROM worker_queue AS q WHERE ctid = ANY (ARRAY("
         " SELECT d.ctid FROM worker_queue AS d WHERE d.p = $1::int4 AND d.deadline_at IS NOT NULL"
         " AND d.deadline_at < statement_timestamp() - $2::int8 * interval '1 millisecond' AND" NOT_OLDER
         " ORDER BY d.deadline_at LIMIT $3::int8 OFFSET $6::int8 FOR UPDATE SKIP LOCKED))"
         " RETURNING q.instance, q.execution, q.activity_id, q.try_number::int8, q.try_timeout_ms, q.attempt,"
         " q.details"},

    /*
      * Which worker may run a try: the first to claim it while no worker has a lease, and the worker that has
      * it. Only this statement decides that. A try that was lost $7 times is claimed only isolated, or when
     * it
      * has $8 strikes and was lost $7 + $8 times: then it will not be run. Not for a message with another
      * digest than the row ($10; a row of an older engine compares nothing). The deadline: -1: it has none.
      */
    [STATEMENT_CLAIM] =
        {"claim", "iiibiitttiii",
         "UPDATE worker_queue AS q SET attempt = q.attempt + 1, worker = $5::text, apart = k.isolated,"
         " lost = CASE WHEN " LOST_NOW " THEN q.lost || q.attempt ELSE q.lost END,"
         " strikes = CASE WHEN q.apart AND " LOST_NOW " THEN q.strikes || q.attempt ELSE q.strikes END,"
         " lost_word = CASE WHEN " LOST_NOW
         " AND q.worker IS DISTINCT FROM q.lost_worker THEN NULL ELSE q.lost_word END,"
         " lost_worker = CASE WHEN " LOST_NOW " THEN q.worker ELSE q.lost_worker END,"
         " claimed_at = clock_timestamp(), renewed_at = NULL, shelved_at = NULL, " SET_LEASE ", " SET_DEADLINE
         " FROM " KEYS_AND(", unnest($6::bool[]) AS isolated, unnest($9::int8[]) AS lease_ms,"
                           " unnest($10::bytea[]) AS digest") WHOSE
         " WHERE" SAME_TRY " AND NOT q.later AND " SAME_DIGEST " AND (" FREE " OR q.worker = $5::text)"
         " AND (k.isolated OR " LOST_THEN " < $7::int4 OR (" STRIKES_THEN " >= $8::int4 AND " LOST_THEN
         " >= $7::int4::int8 + $8::int4))"
         " RETURNING k.ord, q.attempt, CASE WHEN q.deadline_at "
         "IS NULL THEN -1 ELSE " DEADLINE_LEFT " END,"
         " q.details, coalesce(cardinality(q.lost), 0)::int8, "
         "coalesce(cardinality(q.strikes), 0)::int8,"
         " coalesce(q.lost_worker, ''), coalesce(q.lost_word, ''),"
         " coalesce(i.orchestration, ''), coalesce(i.version, 0)::int8, " CLAIMED
         ", CASE WHEN q.digest IS NULL THEN 0 ELSE 1 END::int8"},
    [STATEMENT_RENEW] = {"renew", "iii",
                         "UPDATE worker_queue AS q SET"
                         " renewed_at = CASE WHEN k.unheard THEN q.renewed_at ELSE clock_timestamp() END,"
                         " attempt = greatest(q.attempt, k.attempt), worker = $9::text,"
                         " claimed_at = coalesce(CASE WHEN q.worker = $9::text AND q.attempt >= k.attempt"
                         " THEN q.claimed_at END, timestamptz 'epoch'"
                         " + nullif(k.claimed, 0) * interval '1 microsecond', clock_timestamp()), " SET_LEASE
                         ", " SET_DEADLINE ", apart = q.apart AND NOT (k.settled AND q.attempt = k.attempt)"
                         " AND q.worker IS NOT DISTINCT FROM $9::text AND q.attempt >= k.attempt, " SET_NOTED
                         " FROM " RENEWED_CLAIMS " WHERE" SAME("activity_id")
                             MINE("$9") " RETURNING k.ord, q.attempt, " CLAIMED},
    /*
     * Claims go to worker $9 with their leases, those that a worker whose name ends with $10 has made on
     * queue $11: this very claim ($5, $6), for this message ($7). Or that a worker has to whom they went so,
     * which was not heard of since (no renewal): its opening may not have been answered. Or that the database
     * has lost. Not a loss; what it may do to its worker counts no more as isolated.
     */
    [STATEMENT_RESUME] =
        {"resume", "iiibit",
         "UPDATE worker_queue AS q SET worker = $9::text, attempt = k.attempt, apart = false,"
         " claimed_at = timestamptz 'epoch' + k.claimed * interval '1 microsecond', renewed_at = NULL,"
         " " SET_LEASE ", " SET_DEADLINE
         " FROM " KEYS_AND(", unnest($5::int8[]) AS attempt, unnest($6::int8[]) AS "
                           "claimed,"
                           " unnest($7::bytea[]) AS digest, unnest($8::int8[]) AS "
                           "lease_ms") " WHERE" SAME_TRY " AND NOT q.later AND q.queue = $11::text"
                                       " AND " SAME_DIGEST " AND ((q.attempt = k.attempt AND " CLAIMED
                                       " = k.claimed AND (q.worker LIKE '%-' || "
                                       "$10::text OR (q.worker IS NOT NULL"
                                       " AND q.renewed_at IS NULL))) OR (q.attempt < "
                                       "k.attempt AND " FREE "))"
                                       " RETURNING k.ord, q.attempt, CASE WHEN "
                                       "q.deadline_at IS NULL THEN -1 "
                                       "ELSE " DEADLINE_LEFT " END,"
                                       " q.details, " CLAIMED ", q.activity"},
    [STATEMENT_COMPLETE] = {"complete", "ii",
                            "DELETE FROM worker_queue AS q USING " CLAIMS " WHERE" SAME("activity_id")
                                MINE("$6") " RETURNING k.ord, q.attempt"},
    /* Like STATEMENT_COMPLETE; also, for quick ones, $7, deletes rows that were never claimed, unless the
     * message has another digest than the row, $8: the deletion is the claim. In one statement, so that all
     * rows are locked in the order of their keys. */
    [STATEMENT_COMPLETE_QUICK] =
        {"complete_quick", "iiibtiii",
         "DELETE FROM worker_queue AS q USING " KEYS_AND(
             ", unnest($5::int8[]) AS attempt,"
             " unnest($7::bool[]) AS quick, unnest($8::bytea[]) AS digest") WHOSE
         " WHERE" SAME(
             "activity_id") " AND q.try_number = k.try AND CASE WHEN k.quick"
                            " THEN q.attempt = 0 AND q.worker IS NULL AND NOT q.later AND " SAME_DIGEST
                            " ELSE " IS_OF(
                                "$6") " END RETURNING k.ord, q.attempt + k.quick::int4,"
                                      " q.try_timeout_ms, q.details, coalesce(i.orchestration, ''),"
                                      " coalesce(i.version, 0)::int8,"
                                      " CASE WHEN q.digest IS NULL THEN 0 ELSE 1 END::int8,"
                                      " " MICROS_OF("clock_timestamp()")},
    [STATEMENT_RELEASE] =
        {"release", "ii",
         "UPDATE worker_queue AS q SET worker = NULL, claimed_at = NULL, renewed_at = clock_timestamp(),"
         " lease_until = NULL, " SET_NOTED " FROM " NOTED_CLAIMS " WHERE" SAME("activity_id")
             HELD("$9") " RETURNING k.ord, q.attempt"},
    /* The worker lives: the claim was not lost, whether or not another worker has the row by now. Except if
     * the worker has written its crash report: it still ends work that it had begun. */
    [STATEMENT_NOT_LOST] = {"not_lost", "ii",
                            "UPDATE worker_queue AS q SET lost = array_remove(q.lost, k.attempt),"
                            " strikes = array_remove(q.strikes, k.attempt),"
                            " worker = CASE WHEN " GIVEN_UP " THEN NULL ELSE q.worker END,"
                            " lease_until = CASE WHEN " GIVEN_UP " THEN NULL ELSE q.lease_until END"
                            " FROM " GIVEN_UP_CLAIMS " WHERE" SAME_TRY " AND (" GIVEN_UP
                            " OR k.attempt = ANY (q.lost))"
                            " AND (q.lost_word IS NULL OR q.lost_worker <> $6::text)"
                            " RETURNING k.ord, q.attempt"},
    /* Worker $1 died, with the report $2. $3..$7 is the try (and its attempt) that it died of, if that is
     * known: its claim is lost, and counts against it like one that was isolated if it was lost $8 times
     * before; those beside it are not lost. If it is not known, the next claims record the loss. Its leases
     * end at once. */
    [STATEMENT_DIED] =
        {"died", "i",
         "UPDATE worker_queue AS q SET"
         " lost = CASE WHEN k.blamed THEN q.lost || q.attempt ELSE q.lost END,"
         " strikes = CASE WHEN k.blamed AND (q.apart OR coalesce(cardinality(q.lost), 0) >= $8::int4)"
         " THEN q.strikes || q.attempt ELSE q.strikes END,"
         " lost_worker = CASE WHEN k.blamed OR $3::text = '' THEN $1::text ELSE q.lost_worker END,"
         " lost_word = CASE WHEN k.blamed OR $3::text = '' THEN $2::text ELSE q.lost_word END,"
         " worker = CASE WHEN $3::text = '' THEN q.worker END, lease_until = NULL,"
         " claimed_at = CASE WHEN $3::text = '' THEN q.claimed_at END,"
         " renewed_at = CASE WHEN $3::text = '' THEN q.renewed_at ELSE clock_timestamp() END"
         " FROM (SELECT w.instance, w.execution, w.activity_id AS id, w.instance = $3::text"
         " AND w.execution = $4::int8 AND w.activity_id = $5::int8 AND w.try_number = $6::int4"
         " AND w.attempt = $7::int8 AS blamed FROM worker_queue AS w WHERE w.worker = $1::text AND NOT "
         "w.later"
         " ORDER BY w.instance, w.execution, w.activity_id FOR UPDATE) AS k"
         " WHERE" SAME("activity_id") " AND q.worker = $1::text RETURNING q.attempt"},
    [STATEMENT_LEAVE] =
        {"leave", "ii",
         "UPDATE worker_queue AS q SET later = true, lease_until = NULL, renewed_at = clock_timestamp(),"
         " " SET_DEADLINE ", " SET_NOTED " FROM " LEFT_CLAIMS " WHERE" SAME("activity_id")
             MINE("$9") " RETURNING k.ord, q.attempt"},
    /* Their messages go, as no worker of the queue knows the activity: not of rows that one has, nor for a
     * message that says something else than the row ($5). */
    [STATEMENT_SHELVE] = {"shelve", "ii",
                          "UPDATE worker_queue AS q SET shelved_at = clock_timestamp() FROM " KEYS_AND(
                              ", unnest($5::bytea[]) AS digest") " WHERE" SAME_TRY
                                                                 " AND NOT q.later AND " SAME_DIGEST
                                                                 " AND " FREE " RETURNING k.ord, q.attempt"},
    /* The state of keys that were not this worker's. $6: when it claimed them; 0: it did not. */
    [STATEMENT_LOOK] = {"look", "iii",
                        "SELECT k.ord, CASE " NO_ROW_STATE " ELSE 2 END::int8, 0::int8"
                        " FROM " KEYS_AND(", unnest($5::int4[]) AS p, unnest($6::int8[]) AS claimed")
                            ITS_ROW BELIEVED_OF_CLAIMS},

    /*
      * Like STATEMENT_LOOK, for claims of worker $5: whether their message, $8, has another digest than the
     * row;
      * whether another worker's lease lasts, and for how long; whether they may only be made isolated, from
     * $7
      * losses on. When the clock has gone back a lease ends as long after now as it should have ended after
     * it
      * was made.
      */
    [STATEMENT_LOOK_CLAIM] =
        {"look_claim", "iii",
         "WITH back AS (UPDATE worker_queue AS q SET lease_until = clock_timestamp() + (q.lease_until"
         " - " LEASED_AT "), claimed_at = least(q.claimed_at, clock_timestamp()),"
         " renewed_at = clock_timestamp() FROM " KEYS " WHERE" SAME_TRY " AND " LEASED_AT
         " > clock_timestamp() AND q.lease_until IS NOT NULL)"
         " SELECT k.ord, CASE " NO_ROW_STATE
         " WHEN q.digest <> k.digest THEN 6 WHEN q.worker <> $5::text AND NOT " FREE " THEN 4"
         " WHEN " LOST_THEN " >= $7::int4 THEN 3 ELSE 2 END::int8,"
         " coalesce(ceil(extract(epoch FROM least(q.lease_until - clock_timestamp(), q.lease_until"
         " - " LEASED_AT ")) * 1000), 0)::int8"
         " FROM " KEYS_AND(", unnest($6::int4[]) AS p, unnest($8::bytea[]) AS digest") ITS_ROW BELIEVED},

    [STATEMENT_SHOW] = {"show", "ttiiiitiiiibtii",
                        "SELECT " INSTANCE_COLUMNS " FROM instances AS i WHERE i.instance = $1::text"},
    /* Rows of one instance: the primary key begins with it. */
    [STATEMENT_SHOW_ACTIVITIES] =
        {"show_activities", "iittitii",
         "SELECT q.execution, q.activity_id, q.queue, q.activity, q.try_number::int8,"
         " coalesce(CASE WHEN NOT q.later THEN q.worker END, ''),"
         " greatest(0, coalesce(floor(extract(epoch FROM statement_timestamp()"
         " - greatest(q.claimed_at, q.renewed_at)) * 1000), 0))::int8, CASE WHEN q.later THEN 1 ELSE 0 "
         "END::int8"
         " FROM worker_queue AS q WHERE q.instance = $1::text ORDER BY q.execution, q.activity_id LIMIT "
         "$2::int8"},
    /* Reads every row once. */
    [STATEMENT_QUEUE_ACTIVITIES] =
        {"queue_activities", "tti",
         "SELECT q.queue, q.activity, count(*) FROM worker_queue AS q"
         " WHERE ($1::text = '' OR q.queue = $1::text) AND NOT q.later GROUP BY 1, 2 ORDER BY 1, 2"},
    /* The page after ($4, $5); planned for the filters at hand, see query_store.c. */
    [STATEMENT_LIST] =
        {"list", "ttiiiitiiiibtii",
         "SELECT " INSTANCE_COLUMNS " FROM instances AS i"
         " WHERE (cardinality($1::int4[]) = 0 OR (cardinality($1::int4[]) = 1 AND i.status = ($1::int4[])[1])"
         " OR (cardinality($1::int4[]) > 1 AND i.status = ANY ($1::int4[]))) AND ($2::text = "
         "'' OR i.orchestration = $2::text)"
         " AND ($3::text = '' OR i.instance LIKE $3::text)"
         " AND ($7::text = '' OR i.parent = $7::text) AND i.created_ms >= $8::int8"
         " AND (($9::bytea[])[1] = '' OR i.custom_status = ($9::bytea[])[1])"
         " AND i.created_ms <= $4::int8 AND (i.created_ms < $4::int8 OR i.instance > $5::text)"
         " ORDER BY i.created_ms DESC, i.instance LIMIT $6::int8"},
    /* Instances that do not go on; 7: of execution 0, which nobody has started. */
    [STATEMENT_STANDING] = {"standing", "tiii",
                            "SELECT orchestration, status::int8, blocked::int8, count(*) FROM instances"
                            " WHERE status IN (2, 3, 8) AND blocked <> 7 GROUP BY 1, 2, 3"
                            " ORDER BY 4 DESC, 1, 2, 3 LIMIT $1::int8"},
    /* Like STATEMENT_STANDING, each with its oldest example. */
    [STATEMENT_STANDING_NAMED] =
        {"standing_named", "tiiitit",
         "SELECT s.orchestration, s.status, s.blocked, s.n, e.instance, e.updated_ms, e.detail"
         " FROM (SELECT orchestration, status::int8 AS status, blocked::int8 AS blocked, count(*) AS n"
         " FROM instances WHERE status IN (2, 3, 8) AND blocked <> 7 GROUP BY 1, 2, 3"
         " ORDER BY 4 DESC, 1, 2, 3 LIMIT $1::int8) AS s"
         " CROSS JOIN LATERAL (SELECT i.instance, i.updated_ms, i.detail FROM instances AS i"
         " WHERE i.orchestration = s.orchestration AND i.status IN (2, 3, 8) AND i.status = s.status"
         " AND i.blocked = s.blocked AND octet_length(i.instance) BETWEEN 1 AND 200"
         " ORDER BY i.updated_ms, i.instance LIMIT 1) AS e ORDER BY s.n DESC, s.orchestration, s.status,"
         " s.blocked"},
    [STATEMENT_COUNT] = {"count", "ii",
                         COUNT_OF("1") AND_OF("2") AND_OF("3") AND_OF("4") AND_OF("5") AND_OF("6") AND_OF("7")
                             AND_OF("8") AND_OF("9")},
    /* The page after $2. Of an only execution there is no row but that of the instance. */
    [STATEMENT_LIST_EXECUTIONS] =
        {"list_executions", "iiiii",
         "(SELECT e.execution, CASE WHEN i.execution = e.execution THEN i.status ELSE e.status END::int8,"
         " e.started_ms, coalesce(e.ended_ms, 0),"
         " CASE WHEN i.execution = e.execution THEN i.turns ELSE e.turns END"
         " FROM executions AS e LEFT JOIN instances AS i ON i.instance = e.instance"
         " WHERE e.instance = $1::text AND e.execution > $2::int8 ORDER BY e.execution LIMIT $3::int8)"
         " UNION ALL (SELECT i.execution, i.status::int8, i.created_ms,"
         " CASE WHEN i.status IN " ENDED " THEN i.updated_ms ELSE 0 END, i.turns FROM instances AS i"
         " WHERE i.instance = $1::text AND i.execution > $2::int8 AND NOT EXISTS (SELECT FROM executions AS e"
         " WHERE e.instance = i.instance AND e.execution = i.execution)) ORDER BY 1 LIMIT $3::int8"},
    /* The page after ($3, $4, $5, $6). */
    [STATEMENT_LIST_QUARANTINE] =
        {"list_quarantine", "tiittiittii",
         "SELECT q.instance, q.execution, q.activity_id, q.queue, q.activity, q.try_number::int8,"
         " q.lost::int8, q.worker, q.reason, q.since_ms, q.until_ms FROM quarantine AS q"
         " WHERE ($1::text = '' OR q.queue = $1::text) AND ($2::text = '' OR q.instance = $2::text)"
         " AND q.since_ms <= $3::int8 AND (q.since_ms < $3::int8"
         " OR (q.instance, q.execution, q.activity_id) > ($4::text COLLATE \"C\", $5::int8, $6::int8))"
         " ORDER BY q.since_ms DESC, q.instance, q.execution, q.activity_id LIMIT $7::int8"},
    [STATEMENT_LIST_SET_ASIDE] =
        {"list_set_aside", "tiiittti",
         "SELECT q.row_table, q.execution, q.id, q.removal::int4::int8, q.row_column, q.code, q.reason,"
         " floor(extract(epoch FROM q.since) * 1000)::int8 FROM set_aside AS q WHERE q.instance = $1::text"
         " ORDER BY q.row_table, q.execution, q.id LIMIT $2::int8"},
    /* How many rows of how many instances, and of the first instance what it is. */
    [STATEMENT_COUNT_SET_ASIDE] =
        {"count_set_aside", "iitttt",
         "SELECT n.rows, n.instances, q.instance, q.row_table, q.row_column, q.reason"
         " FROM (SELECT count(*) AS rows, count(DISTINCT instance) AS instances FROM set_aside) AS n,"
         " (SELECT * FROM set_aside ORDER BY since, instance LIMIT 1) AS q"},
    /* Reads every row once: what is asked of them changes with each claim, so no index has it. */
    [STATEMENT_QUEUES] =
        {"queues", "ttiiiii",
         "SELECT q.queue, coalesce(CASE WHEN NOT q.later THEN q.worker END, '') AS holder,"
         " count(*) FILTER (WHERE NOT q.later), count(*) FILTER (WHERE q.later), 0::int8,"
         " greatest(0, coalesce(floor(extract(epoch FROM statement_timestamp()"
         " - max(greatest(q.claimed_at, q.renewed_at)) FILTER (WHERE NOT q.later AND q.worker IS NOT NULL)) "
         "* 1000), 0))::int8,"
         " greatest(0, coalesce(floor(extract(epoch FROM clock_timestamp()"
         " - min(q.created_at) FILTER (WHERE NOT q.later AND " FREE ")) * 1000), 0))::int8"
         " FROM worker_queue AS q WHERE ($1::text = '' OR q.queue = $1::text) GROUP BY q.queue, holder"
         " UNION ALL SELECT q.queue, '', 0, 0, count(*), 0, 0 FROM quarantine AS q"
         " WHERE ($1::text = '' OR q.queue = $1::text) GROUP BY q.queue ORDER BY 1, 2"},
    /* Up to where the rows of partition $1 are projected, its epoch, and whether they are complete. */
    [STATEMENT_ROWS_PARTITION] =
        {"rows_partition", "iii",
         "SELECT q.projected_seq, q.epoch, CASE WHEN q.incarnation = i.id THEN 1 ELSE 0 END::int8"
         " FROM partitions AS q LEFT JOIN incarnation AS i ON true WHERE q.p = $1::int4"},
    [STATEMENT_ROWS_IDS] =
        {"rows_ids", "t",
         "SELECT u.instance FROM (" IDS_OF("worker_queue") " UNION " IDS_OF("timers") " UNION " IDS_OF(
             "quarantine") " UNION " IDS_OF("executions") " UNION " IDS_OF("instances") ") AS u ORDER BY "
                                                                                        "u.instance LIMIT "
                                                                                        "$3::int8"},
    /* Ids of rows that are of no partition: there are $1. */
    [STATEMENT_ROWS_STRAY] =
        {"rows_stray", "t",
         STRAY_OF("worker_queue") " UNION " STRAY_OF("timers") " UNION " STRAY_OF(
             "quarantine") " UNION " STRAY_OF("executions") " UNION " STRAY_OF("instances") " LIMIT 10000"},
    /* The rows of an instance, as struct stored_row has them: key, numbers, texts. */
    [STATEMENT_ROWS_ACTIVITIES] =
        {"rows_activities", "iiiiittbbti",
         "SELECT q.execution, q.activity_id, q.p::int8, q.try_number::int8, q.try_timeout_ms, q.queue,"
         " q.activity, q.details, q.digest, " WRONG_CLAIM ", CASE WHEN q.attempt > 0 OR q.later THEN 1"
         " ELSE 0 END::int8 FROM worker_queue AS q WHERE q.instance = $1::text"
         " ORDER BY q.execution, q.activity_id"},
    [STATEMENT_ROWS_TIMERS] = {"rows_timers", "iiii",
                               "SELECT q.execution, q.timer_id, q.p::int8, q.due_ms FROM timers AS q"
                               " WHERE q.instance = $1::text ORDER BY q.execution, q.timer_id"},
    [STATEMENT_ROWS_QUARANTINE] =
        {"rows_quarantine", "iiiiiiitttt",
         "SELECT q.execution, q.activity_id, q.p::int8, q.try_number::int8, q.lost::int8, q.since_ms,"
         " q.until_ms, q.queue, q.activity, q.worker, q.reason FROM quarantine AS q"
         " WHERE q.instance = $1::text ORDER BY q.execution, q.activity_id"},
    [STATEMENT_ROWS_EXECUTIONS] =
        {"rows_executions", "iiiiiiii",
         "SELECT q.execution, 0::int8, q.p::int8, q.status::int8, q.started_ms, coalesce(q.ended_ms, 0),"
         " q.turns, q.history_seq FROM executions AS q WHERE q.instance = $1::text ORDER BY q.execution"},
    [STATEMENT_ROWS_INSTANCES] =
        {"rows_instances", "iiiiiiiiiiittbt",
         "SELECT 0::int8, 0::int8, q.p::int8, q.execution, q.status::int8, q.created_ms, q.updated_ms,"
         " q.turns, q.history_seq, q.version::int8, q.blocked::int8, q.orchestration, q.detail,"
         " coalesce(q.custom_status, ''), q.parent FROM instances AS q WHERE q.instance = $1::text"},
    /* Instances of partition $1 of which rows are set aside. */
    [STATEMENT_ROWS_SET_ASIDE] = {"rows_set_aside", "t",
                                  "SELECT DISTINCT q.instance FROM set_aside AS q WHERE q.p = $1::int4"
                                  " ORDER BY q.instance"},
    /* Fences the owner of partition $1, which opens it again: it repeats the projection after the watermark,
     * and reads timers and counts again. */
    [STATEMENT_ROWS_FENCE] =
        {"rows_fence", "it",
         "WITH fenced AS (UPDATE partitions AS q SET epoch = q.epoch + 1, updated_at = clock_timestamp()"
         " WHERE q.p = $1::int4 RETURNING q.epoch) SELECT f.epoch,"
         " pg_notify(current_schema()::text, $1::int4::text)::text FROM fenced AS f"},
    /* created_at is when the try was scheduled, so that its message is looked for at once. */
    [STATEMENT_ROWS_ACTIVITIES_ADD] =
        {"rows_activities_add", "",
         "INSERT INTO worker_queue (instance, execution, activity_id, p, queue, activity, try_number,"
         " try_timeout_ms, details, digest, created_at)"
         " SELECT u.instance, u.execution, u.id, u.p, u.queue, u.activity, u.try, u.timeout_ms, u.details,"
         " nullif(u.digest, ''), timestamptz 'epoch' + u.scheduled_ms * interval '1 millisecond'"
         " FROM unnest($1::text[], $2::int8[], $3::int8[], $4::text[], $5::text[], $6::int4[], $7::int8[],"
         " $8::bytea[], $9::bytea[], $10::int4[], $11::int8[]) AS u (instance, execution, id, queue,"
         " activity, try, timeout_ms, details, digest, p, scheduled_ms)"
         " ON CONFLICT (instance, execution, activity_id) DO NOTHING"},
    /* The claim stays, unless no worker can have made it. */
    [STATEMENT_ROWS_ACTIVITIES_MEND] =
        {"rows_activities_mend", "",
         "UPDATE worker_queue AS q SET queue = u.queue, activity = u.activity, try_number = u.try,"
         " try_timeout_ms = u.timeout_ms, digest = coalesce(nullif(u.digest, ''), q.digest), p = u.p,"
         " details = CASE WHEN q.attempt > 0 OR q.later THEN q.details ELSE u.details END,"
         " attempt = CASE WHEN u.wrong THEN greatest(q.attempt, 0) ELSE q.attempt END,"
         " worker = CASE WHEN u.wrong THEN NULL ELSE q.worker END,"
         " claimed_at = CASE WHEN u.wrong THEN NULL ELSE q.claimed_at END,"
         " renewed_at = CASE WHEN u.wrong THEN NULL ELSE q.renewed_at END,"
         " lease_until = CASE WHEN u.wrong THEN NULL ELSE q.lease_until END,"
         " deadline_at = CASE WHEN u.wrong THEN NULL ELSE q.deadline_at END,"
         " swept_at = CASE WHEN u.wrong THEN NULL ELSE q.swept_at END,"
         " lost = CASE WHEN u.wrong THEN NULL ELSE q.lost END,"
         " strikes = CASE WHEN u.wrong THEN NULL ELSE q.strikes END,"
         " shelved_at = CASE WHEN u.wrong THEN NULL ELSE q.shelved_at END,"
         " created_at = CASE WHEN u.wrong THEN timestamptz 'epoch' + u.scheduled_ms * interval '1"
         " millisecond' ELSE q.created_at END"
         " FROM unnest($1::text[], $2::int8[], $3::int8[], $4::text[], $5::text[], $6::int4[], $7::int8[],"
         " $8::bytea[], $9::bytea[], $10::int4[], $11::int8[], $12::bool[]) AS u (instance, execution, id,"
         " queue, activity, try, timeout_ms, details, digest, p, scheduled_ms, wrong)"
         " WHERE q.instance = u.instance AND q.execution = u.execution AND q.activity_id = u.id"},
    [STATEMENT_ROWS_EXECUTIONS_REMOVE] =
        {"rows_executions_remove", "",
         "DELETE FROM executions AS q USING unnest($1::text[], $2::int8[]) AS k (instance, execution)"
         " WHERE q.instance = k.instance AND q.execution = k.execution"},

    /* Whose rows these are. */
    [STATEMENT_NAMESPACE] =
        {"namespace", "tiiiitt",
         "SELECT coalesce((SELECT identity::text FROM namespace), ''),"
         " (SELECT count(*) FROM partitions WHERE epoch > 0),"
         " (SELECT count(*) FROM (SELECT 1 FROM instances LIMIT $1::int8) AS few),"
         " coalesce((SELECT " MS_OF(
             "max(updated_at)") " FROM partitions), 0),"
                                " coalesce(" MS_OF(
                                    "l.accepted_at") ", 0), coalesce(l.actor, ''), coalesce(l.reason, '')"
                                                     " FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM "
                                                     "losses ORDER BY accepted_at DESC LIMIT 1) AS l ON "
                                                     "true"},
    [STATEMENT_NAMESPACE_ID] = {"namespace_id", "t", "SELECT identity::text FROM namespace"},
    [STATEMENT_NAMESPACE_ADOPT] =
        {"namespace_adopt", "",
         "INSERT INTO namespace (identity) VALUES ($1::text::uuid) ON CONFLICT (one) DO NOTHING"},
    /* $2 instead of $1; fails with division_by_zero when it is another one. */
    [STATEMENT_NAMESPACE_SUCCEED] =
        {"namespace_succeed", "i",
         "WITH made AS (INSERT INTO namespace AS q (identity) VALUES ($2::text::uuid) ON CONFLICT (one) DO "
         "UPDATE"
         " SET identity = excluded.identity, since = clock_timestamp() WHERE q.identity::text = $1::text"
         " RETURNING 1) SELECT 1 / count(*) FROM made"},
    [STATEMENT_LOSS_ADD] = {"loss_add", "",
                            "INSERT INTO losses (identity, successor, actor, reason, what)"
                            " VALUES ($1::text, $2::text, $3::text, $4::text, $5::text)"},
    [STATEMENT_LOGS_KNOWN] = {"logs_known", "iiiiii",
                              "SELECT q.p::int8, q.projected_seq, q.projected_mark, q.kept_seq, q.kept_mark,"
                              " " MS_OF("q.updated_at") " FROM partitions AS q ORDER BY q.p"},
    [STATEMENT_LOG_KNOWN] =
        {"log_known", "tiiiii",
         "SELECT coalesce((SELECT identity::text FROM namespace), ''), coalesce(q.projected_seq, 0),"
         " coalesce(q.projected_mark, 0), coalesce(q.kept_seq, 0), coalesce(q.kept_mark, 0),"
         " coalesce(" MS_OF(
             "q.updated_at") ", 0)"
                             " FROM (SELECT 1) AS one LEFT JOIN partitions AS q ON q.p = $1::int4"},
    /* Keeps only a record that is in the log: an older version may have noted one of another log. */
    [STATEMENT_LOG_KEEP] =
        {"log_keep", "",
         "UPDATE partitions AS q SET"
         " kept_seq = CASE WHEN q.later_seq <= q.projected_seq THEN q.later_seq ELSE 0 END,"
         " kept_mark = CASE WHEN q.later_seq <= q.projected_seq THEN q.later_mark ELSE 0 END,"
         " later_seq = q.projected_seq, later_mark = q.projected_mark, later_at = clock_timestamp()"
         " WHERE q.p = $1::int4 AND q.epoch = $2::int8"
         " AND q.later_at <= clock_timestamp() - $3::int8 * interval '1 millisecond'"
         " AND (q.kept_seq <> q.projected_seq OR q.later_seq <> q.projected_seq)"},
    /* Of partitions $1: the next owner projects all of the log that there is. */
    [STATEMENT_LOGS_FORGET] =
        {"logs_forget", "",
         "UPDATE partitions AS q SET epoch = q.epoch + 1, projected_seq = 0, projected_mark = 0, kept_seq = "
         "0,"
         " kept_mark = 0, later_seq = 0, later_mark = 0, signed_mark = 0, incarnation = NULL,"
         " updated_at = clock_timestamp()"
         " WHERE q.p = ANY ($1::int4[])"},
    [STATEMENT_ACTIVITIES_FORGET] = {"activities_forget", "",
                                     "DELETE FROM worker_queue WHERE p = ANY ($1::int4[])"},
    [STATEMENT_TIMERS_FORGET] = {"timers_forget", "", "DELETE FROM timers WHERE p = ANY ($1::int4[])"},
    [STATEMENT_QUARANTINE_FORGET] = {"quarantine_forget", "",
                                     "DELETE FROM quarantine WHERE p = ANY ($1::int4[])"},
    [STATEMENT_INSTANCES_FORGET] = {"instances_forget", "",
                                    "DELETE FROM instances WHERE p = ANY ($1::int4[])"},
    [STATEMENT_EXECUTIONS_FORGET] = {"executions_forget", "",
                                     "DELETE FROM executions WHERE p = ANY ($1::int4[])"},
};
