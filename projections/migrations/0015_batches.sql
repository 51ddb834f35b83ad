-- Each batch of rows says which one it follows, so that none is written to rows of another time: those of a restored
-- backup, or of a replica that was behind.
ALTER TABLE partitions
    ADD COLUMN batches bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN partitions.batches IS 'Number of batches that were applied to the partition''s rows: the owner of the epoch knows it, and its next batch is refused where there is another one';
COMMENT ON COLUMN partitions.updated_at IS 'When the row was last written, by the database''s clock: a claim that is newer can have lost its row only to a restored backup';

-- Workers compare that time: whoever may see whether the rows are complete may see it.
DO $$
DECLARE
    of record;
BEGIN
    FOR of IN SELECT DISTINCT grantee FROM information_schema.column_privileges
        WHERE table_schema = current_schema() AND table_name = 'partitions' AND column_name = 'incarnation'
        AND privilege_type = 'SELECT' AND grantee <> 'PUBLIC' LOOP
        EXECUTE pg_catalog.format('GRANT SELECT (updated_at) ON partitions TO %I', of.grantee);
    END LOOP;
END
$$;
