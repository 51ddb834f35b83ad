-- Rows of activities are signed with the key of nonces. When that was lost and given up, those of the former key are of no
-- use: a worker that holds one ends with a result that no engine takes.
ALTER TABLE partitions ADD COLUMN signed_mark bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN partitions.signed_mark IS 'A mark of the key of nonces with which the rows of activities are signed; 0: an engine of an earlier version has written them';
