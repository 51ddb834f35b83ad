-- What engine, worker and reader may do with the tables of a namespace, and nothing more. `thole migrate --grants` has this file
-- in it and does the same; or with psql, after each migration, as thole_<namespace>_migrate (roles.sql makes the roles):
--
--   psql -v ON_ERROR_STOP=1 -v namespace=default -f grants.sql "dbname=thole user=thole_default_migrate"
--
-- It may be run again. Beside statements it may have lines of psql that begin with a backslash, BEGIN; and COMMIT;.
\set ON_ERROR_STOP on
\set schema thole_ :namespace
\set owner thole_ :namespace _owner
\set engine thole_ :namespace _engine
\set worker thole_ :namespace _worker
\set reader thole_ :namespace _reader

BEGIN;
SET LOCAL ROLE :"owner";
REVOKE ALL ON ALL TABLES IN SCHEMA :"schema" FROM PUBLIC, :"engine", :"worker", :"reader";
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA :"schema" FROM PUBLIC, :"engine", :"worker", :"reader";
-- Rights to columns go with those to the whole table.

GRANT SELECT, INSERT, UPDATE, DELETE ON :"schema".partitions, :"schema".worker_queue, :"schema".timers, :"schema".instances,
    :"schema".executions, :"schema".quarantine, :"schema".incarnation, :"schema".set_aside TO :"engine";
GRANT SELECT ON :"schema".schema_migrations TO :"engine";
-- Whose rows these are, noted by the first engine; thole recover, which runs as this role, notes which losses were accepted.
GRANT SELECT, INSERT, UPDATE ON :"schema".namespace TO :"engine";
GRANT SELECT, INSERT ON :"schema".losses TO :"engine";

-- A claim reads which orchestration scheduled the activity, and whether the rows of its partition are complete.
GRANT SELECT, DELETE ON :"schema".worker_queue TO :"worker";
GRANT UPDATE (attempt, worker, claimed_at, renewed_at, deadline_at, lease_until, details, later, apart, lost, strikes,
              lost_worker, lost_word, shelved_at) ON :"schema".worker_queue TO :"worker";
GRANT SELECT (instance, orchestration, version) ON :"schema".instances TO :"worker";
GRANT SELECT (p, incarnation, updated_at) ON :"schema".partitions TO :"worker";
GRANT SELECT (id) ON :"schema".incarnation TO :"worker";

-- thole projections verify reads whether the rows of a partition are complete.
GRANT SELECT (id) ON :"schema".incarnation TO :"reader";
GRANT SELECT ON :"schema".instances, :"schema".executions, :"schema".worker_queue, :"schema".timers, :"schema".quarantine,
    :"schema".partitions, :"schema".schema_migrations, :"schema".set_aside, :"schema".namespace,
    :"schema".losses TO :"reader";
COMMIT;
