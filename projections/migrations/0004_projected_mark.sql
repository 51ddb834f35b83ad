-- Which record of the history stream the rows end with: a sequence alone says the same of another stream, one
-- that lost its tail and went on.
ALTER TABLE partitions
    ADD COLUMN projected_mark bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN partitions.projected_mark IS 'Digest of the record at projected_seq; 0: not known. When the stream has another record there, the rows are made anew';
