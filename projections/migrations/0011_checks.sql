-- Values that thole cannot have written are refused: whoever else may write to these tables cannot make an engine, a
-- worker or a list fail. The limits are those of the code: ids of 1 to 200 bytes, names [A-Za-z0-9_-]{1,64}, details
-- of a heartbeat of 16 KiB; texts for people of 1 KiB, more when bytes that are no UTF-8 were replaced in them.
--
-- They are CHECK constraints of domains and not of tables: those are evaluated for each row that is updated, whatever
-- is assigned, and made anew for each statement. So claims and renewals pay for none of these.
CREATE DOMAIN instance_id AS text COLLATE "C" CHECK (octet_length(VALUE) BETWEEN 1 AND 200);
CREATE DOMAIN instance_id_or_none AS text COLLATE "C" CHECK (octet_length(VALUE) <= 200);
CREATE DOMAIN code_name AS text COLLATE "C" CHECK (VALUE ~ '^[A-Za-z0-9_-]{1,64}$');
CREATE DOMAIN code_name_or_none AS text COLLATE "C" CHECK (VALUE ~ '^[A-Za-z0-9_-]{0,64}$');
CREATE DOMAIN worker_name AS text COLLATE "C" CHECK (octet_length(VALUE) <= 1024);
CREATE DOMAIN short_text AS text CHECK (octet_length(VALUE) <= 4096);
CREATE DOMAIN short_bytes AS bytea CHECK (octet_length(VALUE) <= 4096);
CREATE DOMAIN detail_bytes AS bytea CHECK (octet_length(VALUE) <= 16384);
CREATE DOMAIN instance_status AS smallint CHECK (VALUE BETWEEN 1 AND 9);
CREATE DOMAIN number AS bigint CHECK (VALUE >= 0);
COMMENT ON DOMAIN instance_id IS 'Of an instance';
COMMENT ON DOMAIN instance_id_or_none IS 'Of an instance, or empty';
COMMENT ON DOMAIN code_name IS 'Of a queue or an activity';
COMMENT ON DOMAIN code_name_or_none IS 'Of an orchestration, or empty';
COMMENT ON DOMAIN worker_name IS 'The incarnation of a worker';
COMMENT ON DOMAIN short_text IS 'The head of a text for people';
COMMENT ON DOMAIN short_bytes IS 'The head of a status that code has set';
COMMENT ON DOMAIN detail_bytes IS 'Of a heartbeat';
COMMENT ON DOMAIN instance_status IS 'See instances.status';
COMMENT ON DOMAIN number IS 'Numbers of executions, events and records, times in milliseconds since 1970 UTC';

-- Rows that are there already and break them are removed as if by somebody else (migrations 7 and 8): their
-- partitions are fenced, and made again from the log.
SELECT pg_catalog.set_config('thole.own', 'off', true);
DELETE FROM worker_queue WHERE NOT (octet_length(instance) BETWEEN 1 AND 200 AND execution >= 0 AND activity_id >= 0
    AND queue ~ '^[A-Za-z0-9_-]{1,64}$' AND activity ~ '^[A-Za-z0-9_-]{1,64}$' AND octet_length(details) <= 16384
    AND coalesce(octet_length(worker), 0) <= 1024 AND coalesce(octet_length(lost_worker), 0) <= 1024
    AND coalesce(octet_length(lost_word), 0) <= 4096);
DELETE FROM timers WHERE NOT (octet_length(instance) BETWEEN 1 AND 200 AND execution >= 0 AND timer_id >= 0
    AND due_ms >= 0);
DELETE FROM instances WHERE NOT (octet_length(instance) BETWEEN 1 AND 200 AND execution >= 0
    AND orchestration ~ '^[A-Za-z0-9_-]{0,64}$' AND status BETWEEN 1 AND 9 AND created_ms >= 0 AND updated_ms >= 0
    AND octet_length(detail) <= 4096 AND coalesce(octet_length(custom_status), 0) <= 4096
    AND octet_length(parent) <= 200);
DELETE FROM executions WHERE NOT (octet_length(instance) BETWEEN 1 AND 200 AND execution >= 0
    AND status BETWEEN 1 AND 9 AND started_ms >= 0);
DELETE FROM quarantine WHERE NOT (octet_length(instance) BETWEEN 1 AND 200 AND execution >= 0 AND activity_id >= 0
    AND queue ~ '^[A-Za-z0-9_-]{1,64}$' AND activity ~ '^[A-Za-z0-9_-]{1,64}$' AND octet_length(worker) <= 1024
    AND octet_length(reason) <= 4096 AND since_ms >= 0 AND until_ms >= 0);
SELECT pg_catalog.set_config('thole.own', 'on', true);

ALTER TABLE worker_queue ALTER instance TYPE instance_id, ALTER execution TYPE number, ALTER activity_id TYPE number,
    ALTER queue TYPE code_name, ALTER activity TYPE code_name, ALTER worker TYPE worker_name,
    ALTER lost_worker TYPE worker_name, ALTER lost_word TYPE short_text, ALTER details TYPE detail_bytes;
ALTER TABLE timers ALTER instance TYPE instance_id, ALTER execution TYPE number, ALTER timer_id TYPE number,
    ALTER due_ms TYPE number;
ALTER TABLE instances ALTER instance TYPE instance_id, ALTER orchestration TYPE code_name_or_none,
    ALTER execution TYPE number,
    ALTER status TYPE instance_status, ALTER created_ms TYPE number, ALTER updated_ms TYPE number,
    ALTER detail TYPE short_text, ALTER custom_status TYPE short_bytes, ALTER parent TYPE instance_id_or_none;
ALTER TABLE executions ALTER instance TYPE instance_id, ALTER execution TYPE number, ALTER status TYPE instance_status,
    ALTER started_ms TYPE number;
ALTER TABLE quarantine ALTER instance TYPE instance_id, ALTER execution TYPE number, ALTER activity_id TYPE number,
    ALTER queue TYPE code_name, ALTER activity TYPE code_name, ALTER worker TYPE worker_name,
    ALTER reason TYPE short_text,
    ALTER since_ms TYPE number, ALTER until_ms TYPE number;
