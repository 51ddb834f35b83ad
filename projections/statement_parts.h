/* Parts of several statements. The rules of all statements are in statements.c. */
#ifndef THOLE_STATEMENT_PARTS_H
#define THOLE_STATEMENT_PARTS_H

/* The keys of arrays $1..$4, tries and all, with their place in the arrays, and further columns. */
#define KEYS_AND(columns)                                                                                    \
    "(SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS execution, unnest($3::int8[]) AS id,"     \
    " unnest($4::int4[]) AS try, generate_series(1::int8, cardinality($1::text[])::int8) AS ord" columns     \
    ") AS k"
#define KEYS KEYS_AND("")
/* No worker has a lease of q. */
#define FREE "(q.lease_until IS NULL OR q.lease_until <= clock_timestamp())"
#define SET_LEASE "lease_until = clock_timestamp() + k.lease_ms * interval '1 millisecond'"
/* KEYS with the attempts of a worker's claims and the digests of their messages; and the condition that q is held
 * by this very claim. */
#define CLAIMS KEYS_AND(", unnest($5::int8[]) AS attempt, unnest($7::bytea[]) AS digest")
#define HELD(worker) " AND q.try_number = k.try AND q.attempt = k.attempt AND q.worker = " worker "::text"
/* A time as microseconds since 1970. */
#define MICROS_OF(time) "(extract(epoch FROM " time ") * 1000000)::int8"
/* The time of q's claim, in microseconds. The attempt alone does not identify the claim: it is counted from
 * the beginning when the row is written again, and when the database has forgotten a claim. */
#define CLAIMED MICROS_OF("q.claimed_at")
/* Claims that worker $6 has given up, with when they were made; and that q is held by this one. */
#define GIVEN_UP_CLAIMS KEYS_AND(", unnest($5::int8[]) AS attempt, unnest($7::int8[]) AS claimed")
#define GIVEN_UP "(q.attempt = k.attempt AND q.worker = $6::text AND " CLAIMED " = k.claimed)"
/*
 * The condition that the try is the worker's: the row names the worker (a claim of its own whose answer was
 * lost may have come later), or the database has lost the claim, which is then restored unless another worker
 * has a lease, or the row was written again for another message. As a worker only ever runs one of them at a
 * time, the worker is all that counts.
 */
#define SAME_DIGEST "(q.digest IS NULL OR q.digest = k.digest)"
#define IS_OF(worker)                                                                                        \
    "(q.worker = " worker "::text OR (q.attempt < k.attempt AND NOT q.later AND " FREE " AND " SAME_DIGEST   \
    "))"
#define MINE(worker) " AND q.try_number = k.try AND " IS_OF(worker)
/* CLAIMS with the facts to be noted: details of heartbeats since, and that the claims have settled; the
 * worker is $9. */
#define NOTED                                                                                                \
    ", unnest($5::int8[]) AS attempt, unnest($6::bool[]) AS noted, unnest($7::bytea[]) AS details,"          \
    " unnest($8::bool[]) AS settled"
#define NOTED_CLAIMS KEYS_AND(NOTED)
/* NOTED_CLAIMS with the time for which they are held from now on, $10, the time when they were made, $11, and
 * whether their worker has resumed without a sign of life since, $12. */
#define RENEWED_CLAIMS                                                                                       \
    KEYS_AND(NOTED ", unnest($10::int8[]) AS lease_ms, unnest($11::int8[]) AS claimed,"                      \
                   " unnest($12::bool[]) AS unheard, unnest($13::bytea[]) AS digest")
/* NOTED_CLAIMS with the digests of their messages. */
#define LEFT_CLAIMS KEYS_AND(NOTED ", unnest($10::bytea[]) AS digest")
#define SET_NOTED "details = CASE WHEN k.noted THEN k.details ELSE q.details END"
/* Keys without tries, of arrays $1..$3. */
#define TIMER_KEYS                                                                                           \
    "(SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS execution,"                               \
    " unnest($3::int8[]) AS id) AS k"

/*
 * q's primary key = k. The form with ANY leaves the planner one way only: for each k a descent into the
 * index. With a plain = it could also walk the whole index and look each row up among the keys, which costs
 * less while the table is empty, and a plan made then would stay for hours.
 */
#define SAME(id) " q.instance = ANY (ARRAY[k.instance]) AND q.execution = k.execution AND q." id " = k.id"

/* Instances with one status, at most $7. It is a constant, so that a partial index can serve it. */
#define COUNT_OF(status)                                                                                     \
    "SELECT " status "::int8, count(*) FROM (SELECT 1 FROM instances AS i WHERE i.status = " status          \
    " AND ($1::text = '' OR i.orchestration = $1::text) AND ($2::text = '' OR i.instance LIKE $2::text)"     \
    " AND ($3::text = '' OR i.parent = $3::text)"                                                            \
    " AND (($4::bytea[])[1] = '' OR i.custom_status = ($4::bytea[])[1])"                                     \
    " AND i.created_ms >= $5::int8 AND i.created_ms < $6::int8 LIMIT $7::int8) AS found"
#define AND_OF(status) " UNION ALL " COUNT_OF(status)

#define INSTANCE_COLUMNS                                                                                     \
    "i.instance, i.orchestration, i.execution, i.status::int8, i.created_ms, i.updated_ms, i.detail,"        \
    " i.p::int8,"                                                                                            \
    " (SELECT count(*) FROM worker_queue AS q WHERE q.instance = i.instance),"                               \
    " (SELECT count(*) FROM timers AS t WHERE t.instance = i.instance),"                                     \
    " i.version::int8, i.custom_status, i.parent, i.turns, i.blocked::int8"

#define SAME_TRY SAME("activity_id") " AND q.try_number = k.try"
/* Instances that were deleted, $1, each with a number, $2; and their rows. */
#define DELETED(number)                                                                                      \
    "(SELECT unnest($1::text[]) AS instance, unnest($2::int8[]) AS " number ") AS k"                         \
    " WHERE q.instance = ANY (ARRAY[k.instance]) AND q." number " <= k." number

/* Statuses of instances that have ended. */
#define ENDED "(4, 5, 6, 7)"
/* Not of rows that only an owner of the database can have written, who has removed the checks of the tables.
 */
#define AN_ID "octet_length(instance) BETWEEN 1 AND 200"
/* The orchestration that scheduled the activity, and its version. The row of an instance is written with
 * those of its activities, so it exists before the message. */
#define WHOSE                                                                                                \
    " LEFT JOIN LATERAL (SELECT i.orchestration, i.version FROM instances AS i"                              \
    " WHERE i.instance = ANY (ARRAY[k.instance])) AS i ON true"
/* Does the claim of worker $5 find one whose worker never reported? Not if that is this worker itself. */
#define LOST_NOW "(q.worker IS NOT NULL AND q.worker <> $5::text)"
#define LOST_THEN "coalesce(cardinality(q.lost), 0) + " LOST_NOW "::int4"
#define STRIKES_THEN "coalesce(cardinality(q.strikes), 0) + (q.apart AND " LOST_NOW ")::int4"
/* Rows of a partition are complete for this incarnation of the database: what is missing is gone. */
#define BELIEVED_IF(condition)                                                                               \
    " LEFT JOIN LATERAL (SELECT true AS yes FROM partitions AS o, incarnation AS i WHERE o.p = k.p"          \
    " AND o.incarnation = i.id" condition ") AS b ON true"
#define BELIEVED BELIEVED_IF("")
#define HAS_ROW(try)                                                                                         \
    "EXISTS (SELECT FROM worker_queue AS q WHERE" SAME("activity_id") " AND q.try_number " try ")"
/* BELIEVED for claims, made at k.claimed: older rows are of a restored backup, which never had the claim.
 * After a claimed row is gone a batch follows, with the result of its activity; and a row that has a later
 * try, or waits for a completion from outside, is no older one. One that has an earlier try is: tries only
 * grow, and an owner that others have replaced may have written to the backup. */
#define BELIEVED_OF_CLAIMS                                                                                   \
    BELIEVED_IF(" AND ((" MICROS_OF("o.updated_at") " >= k.claimed AND NOT " HAS_ROW(                        \
        "< k.try") ") OR " HAS_ROW(">= k.try") ")")
/* The row of a key that needs a worker. What the states are: enum row_state. */
#define ITS_ROW                                                                                              \
    " LEFT JOIN LATERAL (SELECT q.* FROM worker_queue AS q WHERE" SAME_TRY " AND NOT q.later) AS q ON true"
#define NO_ROW_STATE "WHEN q.instance IS NULL THEN CASE WHEN b.yes THEN 0 ELSE 5 END"
/* When the lease of q was made or renewed. Later than now: the database's clock has gone back. */
#define LEASED_AT "greatest(q.claimed_at, q.renewed_at)"
/* The first claim writes it, or who takes a claim back that the database has lost. */
#define SET_DEADLINE                                                                                         \
    "deadline_at = CASE WHEN q.try_timeout_ms > 0"                                                           \
    " THEN coalesce(q.deadline_at, clock_timestamp() + q.try_timeout_ms * interval '1 millisecond') END"
/* Milliseconds from now to q's deadline; 0: it has passed. */
#define DEADLINE_LEFT "greatest(0, ceil(extract(epoch FROM q.deadline_at - clock_timestamp()) * 1000))::int8"

/*
 * The reason why no worker, engine or sweeper can have written q; empty: there is none. The times of a row
 * are the database's; a minute is left for a clock that was set back.
 */
#define WRONG_CLAIM                                                                                          \
    "CASE WHEN q.attempt < 0 OR coalesce(cardinality(q.lost), 0) > q.attempt"                                \
    " OR coalesce(cardinality(q.strikes), 0) > q.attempt"                                                    \
    " THEN 'attempt ' || q.attempt || ', lost ' || coalesce(cardinality(q.lost), 0)"                         \
    " || ' times, strikes ' || coalesce(cardinality(q.strikes), 0)"                                          \
    " WHEN q.worker IS NOT NULL AND (q.attempt = 0 OR q.claimed_at IS NULL)"                                 \
    " THEN 'of ' || q.worker || ', which claimed nothing'"                                                   \
    " WHEN q.lease_until IS NOT NULL AND (q.worker IS NULL OR q.later) THEN 'a lease of nobody'"             \
    " WHEN q.lease_until > greatest(q.claimed_at, q.renewed_at) + interval '1 day 1 minute'"                 \
    " THEN 'a lease until ' || q.lease_until"                                                                \
    " WHEN q.deadline_at IS NOT NULL AND q.try_timeout_ms = 0 THEN 'a deadline without a timeout'"           \
    " WHEN q.deadline_at > greatest(q.created_at, q.claimed_at, q.renewed_at)"                               \
    " + q.try_timeout_ms * interval '1 millisecond' + interval '1 minute'"                                   \
    " THEN 'a deadline at ' || q.deadline_at"                                                                \
    " WHEN greatest(q.created_at, q.claimed_at, q.renewed_at, q.swept_at, q.shelved_at)"                     \
    " > clock_timestamp() + interval '1 minute' THEN 'a time in the future' ELSE '' END"
/* Ids of the rows of partition $1 in one table, after $2: each once, in order. */
#define IDS_OF(table)                                                                                        \
    "(SELECT DISTINCT q.instance FROM " table " AS q WHERE q.p = $1::int4 AND q.instance > $2::text"         \
    " ORDER BY q.instance LIMIT $3::int8)"
#define STRAY_OF(table) "SELECT q.instance FROM " table " AS q WHERE q.p < 0 OR q.p >= $1::int4"

/* The owner's view of its row q of partition p: the epoch is its own, and nothing was applied since. */
#define OWNED_COLUMNS                                                                                        \
    "unnest($1::int4[]) AS p, unnest($2::int8[]) AS epoch, unnest($3::int8[]) AS from_seq,"                  \
    " unnest($4::int8[]) AS from_mark, unnest($5::int8[]) AS batches"
#define AS_OWNED                                                                                             \
    " q.epoch = k.epoch AND q.projected_seq = k.from_seq AND q.projected_mark = k.from_mark"                 \
    " AND q.batches = k.batches"
/* The rows of partition $1 are not older than what the owner of epoch $4 has seen of them, $5 batches. */
#define NOT_OLDER                                                                                            \
    " EXISTS (SELECT FROM partitions AS r WHERE r.p = $1::int4 AND r.epoch = $4::int8 AND r.batches >= "     \
    "$5::int8)"
/* A time as milliseconds since 1970. */
#define MS_OF(time) "floor(extract(epoch FROM " time ") * 1000)::int8"
#endif
