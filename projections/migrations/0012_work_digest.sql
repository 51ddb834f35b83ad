-- A claim compares what the work message says with what the engine has scheduled.
CREATE DOMAIN work_digest AS bytea CHECK (octet_length(VALUE) = 16);
COMMENT ON DOMAIN work_digest IS 'Half of a SHA-256';
ALTER TABLE worker_queue
    ADD COLUMN digest work_digest;
COMMENT ON COLUMN worker_queue.digest IS 'Of what its work message says: queue, activity, nonce, input. NULL: written by an engine of before, and any message may claim it';
