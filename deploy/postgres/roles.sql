-- The roles of one namespace, and its schema. Once for each namespace, in thole's database, by a role that may create
-- roles and schemas, before the first migration:
--
--   psql -v ON_ERROR_STOP=1 -v namespace=default -f roles.sql "dbname=thole"
--   psql -c "\password thole_default_engine"            -- and those of migrate, worker, reader, as far as they are used
--   THOLE_POSTGRES="host=… dbname=thole user=thole_default_migrate" thole migrate --grants -n default
--
-- After each upgrade that has migrations: thole migrate --grants again, then the programs. This file may be run again.
--
--   thole_<namespace>_owner    owns the schema and its tables; nobody logs in as it
--   thole_<namespace>_migrate  creates and changes tables, as the owner
--   thole_<namespace>_engine   reads and writes all rows
--   thole_<namespace>_worker   claims, renews and completes activities: rows of worker_queue
--   thole_<namespace>_reader   reads: thole list, show, queue
--
-- worker and reader have limits of connections, so that none of them takes all that the server has: 60 % and 20 % of
-- max_connections, and migrate has 5; the rest is left to the engines. Other numbers, for example where the database has several
-- namespaces: psql -v worker_connections=40 -v reader_connections=10; -1 is no limit.
\set ON_ERROR_STOP on
\set schema thole_ :namespace
\set owner thole_ :namespace _owner
\set migrate thole_ :namespace _migrate
\set engine thole_ :namespace _engine
\set worker thole_ :namespace _worker
\set reader thole_ :namespace _reader

\if :{?worker_connections}
\else
SELECT greatest(10, pg_catalog.current_setting('max_connections')::int * 6 / 10) AS worker_connections \gset
\endif
\if :{?reader_connections}
\else
SELECT greatest(5, pg_catalog.current_setting('max_connections')::int * 2 / 10) AS reader_connections \gset
\endif

SELECT pg_catalog.format('CREATE ROLE %I %s', name, login)
FROM (VALUES (:'owner', 'NOLOGIN'), (:'migrate', 'LOGIN'), (:'engine', 'LOGIN'), (:'worker', 'LOGIN'), (:'reader', 'LOGIN'))
    AS wanted (name, login)
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = name) \gexec

ALTER ROLE :"migrate" CONNECTION LIMIT 5;
ALTER ROLE :"worker" CONNECTION LIMIT :worker_connections;
ALTER ROLE :"reader" CONNECTION LIMIT :reader_connections;

GRANT :"owner" TO :"migrate";
-- Engines end sessions of these that keep them waiting with an open transaction: who may change a row may lock it, and the table.
GRANT :"worker", :"reader" TO :"engine";
-- Who creates the schema for another must be able to become it (a superuser is).
SELECT pg_catalog.format('CREATE SCHEMA %I AUTHORIZATION %I', :'schema', :'owner')
WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = :'schema') \gexec

-- What migrate creates belongs to the owner. No program finds anything but in the schema: temporary tables come last.
SELECT pg_catalog.format('ALTER ROLE %I IN DATABASE %I SET role = %I', :'migrate', current_database(), :'owner') \gexec
SELECT pg_catalog.format('ALTER ROLE %I IN DATABASE %I SET search_path = %I, pg_temp', name, current_database(), :'schema')
FROM (VALUES (:'migrate'), (:'engine'), (:'worker'), (:'reader')) AS wanted (name) \gexec

-- What a session has that sets nothing else, such as one of psql; thole sets its own. A transaction that somebody has left open holds
-- its locks for so long at most.
SELECT pg_catalog.format('ALTER ROLE %I IN DATABASE %I SET %s = %L', name, current_database(), setting, value)
FROM (VALUES (:'worker'), (:'reader')) AS wanted (name),
    (VALUES ('lock_timeout', '10s'), ('statement_timeout', '60s'), ('idle_in_transaction_session_timeout', '30s'))
    AS settings (setting, value) \gexec

-- By default everybody may connect to a database, create temporary tables in it and (until Postgres 15) objects in schema public.
SELECT pg_catalog.format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SELECT pg_catalog.format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name)
FROM (VALUES (:'migrate'), (:'engine'), (:'worker'), (:'reader')) AS wanted (name) \gexec
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
REVOKE ALL ON SCHEMA :"schema" FROM PUBLIC;
GRANT USAGE ON SCHEMA :"schema" TO :"engine", :"worker", :"reader";

-- Of tables and functions that later migrations create. What a worker needs is granted by name, in grants.sql.
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"engine";
ALTER DEFAULT PRIVILEGES FOR ROLE :"owner" IN SCHEMA :"schema" GRANT SELECT ON TABLES TO :"reader";
