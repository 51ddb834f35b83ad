-- The row of an execution is written when it begins and when it ends, not with each turn.
COMMENT ON COLUMN executions.status IS 'As it began, or as it ended; meanwhile see instances.status';
COMMENT ON COLUMN executions.turns IS 'As it began, or as it ended; meanwhile see instances.turns';
COMMENT ON COLUMN executions.history_seq IS 'Stream sequence of the record that this row is from';
