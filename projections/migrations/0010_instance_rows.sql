-- The row of an instance that runs is written when it says something new, and else every 10 s, not with each turn.
COMMENT ON COLUMN instances.updated_ms IS 'Logical time of the last turn; while it runs, of one less than 10 s before it';
COMMENT ON COLUMN instances.turns IS 'Number of the turn that this row is from';
COMMENT ON COLUMN instances.history_seq IS 'Stream sequence of that turn''s record; the row never goes back';
-- Of an instance that never continued as new there is no row but its own: most have one execution.
COMMENT ON TABLE executions IS 'One row for each execution of the instances that have continued as new; of others instances says all';
