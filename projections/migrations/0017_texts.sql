-- The same condition, written so that its text is the same after a dump and its restore: Postgres keeps BETWEEN as a
-- condition of its own inside the AND, and reads its own text back without it.
ALTER DOMAIN code_name DROP CONSTRAINT code_name_check;
ALTER DOMAIN code_name ADD CONSTRAINT code_name_check
    CHECK (octet_length(VALUE) >= 1 AND octet_length(VALUE) <= 64 AND VALUE !~ '[^A-Za-z0-9_-]') NOT VALID;

COMMENT ON TABLE worker_queue IS 'One row for each activity that is scheduled and not resolved; engines delete it to cancel the activity; a row that is deleted by hand is made again from the history';
