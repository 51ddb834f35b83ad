-- Rows that cannot be written, because of what is in them: a constraint, a trigger, a number out of range. They are named
-- here in the transaction that writes the others, so that one of them does not stop its partition. The key of a row is
-- kept with bytes that are no UTF-8 replaced.
CREATE TABLE set_aside (
    instance text COLLATE "C" NOT NULL,
    row_table text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    id bigint NOT NULL,
    p integer NOT NULL,
    removal boolean NOT NULL,
    projected_seq bigint NOT NULL,
    row_column text NOT NULL,
    code text NOT NULL,
    reason text NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance, row_table, execution, id)
);
CREATE INDEX set_aside_partition ON set_aside (p);
COMMENT ON TABLE set_aside IS 'One row for each row of the other tables that could not be written or removed as the history says';
COMMENT ON COLUMN set_aside.instance IS 'Instance of the row';
COMMENT ON COLUMN set_aside.row_table IS 'The table in which it is missing or not as it should be';
COMMENT ON COLUMN set_aside.execution IS 'Its execution; 0 in instances';
COMMENT ON COLUMN set_aside.id IS 'Its activity_id or timer_id; 0 in instances and executions';
COMMENT ON COLUMN set_aside.p IS 'Partition of the instance';
COMMENT ON COLUMN set_aside.removal IS 'It could not be removed; else it could not be written';
COMMENT ON COLUMN set_aside.projected_seq IS 'Up to where the partition was projected before: its record is behind that, or is made again';
COMMENT ON COLUMN set_aside.row_column IS 'The column that is refused, or several that may be; empty: not known';
COMMENT ON COLUMN set_aside.code IS 'SQLSTATE; empty: thole does not send the value';
COMMENT ON COLUMN set_aside.reason IS 'Why, in the words of the database';
COMMENT ON COLUMN set_aside.since IS 'When it was refused first, by the database''s clock';
COMMENT ON INDEX set_aside_partition IS 'How many there are of a partition';
