-- Why an instance does not go on, so that those that stand still can be counted and found by reason.
ALTER TABLE instances ADD COLUMN blocked smallint NOT NULL DEFAULT 0;
COMMENT ON COLUMN instances.blocked IS 'Why it does not go on: 1 no code, 2 divergence, 3 damaged history, 4 a newer version''s history, 5 a limit, 6 paused, 7 not started, 8 its code crashes the engine; 0: it goes on, has ended, or an engine of an earlier version has written the row';
CREATE INDEX instances_standing ON instances (orchestration, status, blocked) WHERE status IN (2, 3, 8);
COMMENT ON INDEX instances_standing IS 'Those that do not go on, by orchestration and reason';
