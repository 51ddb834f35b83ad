-- The projection: what is derived from committed history. Everything here can be emptied and rebuilt from the
-- streams, so the tables are shaped for speed: no foreign keys, no payloads, few indexes. Runs with the
-- namespace's schema alone on the search path.
--
-- Instance ids are compared byte by byte (collation "C"): that is the order in which all statements lock rows.

CREATE TABLE partitions (
    p integer PRIMARY KEY,
    epoch bigint NOT NULL,
    projected_seq bigint NOT NULL DEFAULT 0,
    updated_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 20, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
        autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
COMMENT ON TABLE partitions IS 'One row for each partition: who may write its rows and how far its log is projected';
COMMENT ON COLUMN partitions.p IS 'Partition number, from 0';
COMMENT ON COLUMN partitions.epoch IS 'Epoch of the owner; a batch of any other epoch is refused (fenced)';
COMMENT ON COLUMN partitions.projected_seq IS 'Sequence in the history stream up to which everything is projected and published';
COMMENT ON COLUMN partitions.updated_at IS 'When the row was last written, by the database''s clock';

-- Claims and renewals touch only columns that no index holds, so that they are HOT updates within the page;
-- fillfactor leaves room for them. Rows live for as long as an activity runs.
CREATE TABLE worker_queue (
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    activity_id bigint NOT NULL,
    p integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    activity text COLLATE "C" NOT NULL,
    attempt bigint NOT NULL DEFAULT 0,
    worker text COLLATE "C",
    claimed_at timestamptz,
    renewed_at timestamptz,
    deadline_at timestamptz,
    swept_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (instance, execution, activity_id)
) WITH (fillfactor = 40, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
CREATE INDEX worker_queue_age ON worker_queue (p, created_at);
COMMENT ON TABLE worker_queue IS 'One row for each activity that is scheduled and not resolved; deleting a row cancels its activity';
COMMENT ON COLUMN worker_queue.instance IS 'Instance that scheduled the activity';
COMMENT ON COLUMN worker_queue.execution IS 'Its execution, from 1';
COMMENT ON COLUMN worker_queue.activity_id IS 'Event id of the scheduling event in that execution';
COMMENT ON COLUMN worker_queue.p IS 'Partition of the instance';
COMMENT ON COLUMN worker_queue.queue IS 'Queue whose workers may run it';
COMMENT ON COLUMN worker_queue.activity IS 'Registered name of the activity';
COMMENT ON COLUMN worker_queue.attempt IS 'Grows with every claim; with worker, the fence of the lease';
COMMENT ON COLUMN worker_queue.worker IS 'Incarnation of the worker that claimed it last; NULL before, and after it was given back';
COMMENT ON COLUMN worker_queue.claimed_at IS 'When it was claimed last';
COMMENT ON COLUMN worker_queue.renewed_at IS 'When that claim was last renewed, or given back';
COMMENT ON COLUMN worker_queue.deadline_at IS 'When the current try has to be over; NULL: no deadline';
COMMENT ON COLUMN worker_queue.swept_at IS 'When the sweeper last took it for an orphan, so that it looks at others next';
COMMENT ON COLUMN worker_queue.created_at IS 'When the row was projected';
COMMENT ON INDEX worker_queue_age IS 'For the sweeper and for counting; created_at never changes';

CREATE TABLE timers (
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    timer_id bigint NOT NULL,
    p integer NOT NULL,
    due_ms bigint NOT NULL,
    PRIMARY KEY (instance, execution, timer_id)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_analyze_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false);
CREATE INDEX timers_due ON timers (p, due_ms);
COMMENT ON TABLE timers IS 'One row for each timer that has neither fired nor been cancelled';
COMMENT ON COLUMN timers.instance IS 'Instance that created the timer';
COMMENT ON COLUMN timers.execution IS 'Its execution, from 1';
COMMENT ON COLUMN timers.timer_id IS 'Event id of the creating event in that execution';
COMMENT ON COLUMN timers.p IS 'Partition of the instance';
COMMENT ON COLUMN timers.due_ms IS 'When it fires: logical time, milliseconds since 1970 UTC';
COMMENT ON INDEX timers_due IS 'The next timers of a partition, by due time';

CREATE TABLE instances (
    instance text COLLATE "C" PRIMARY KEY,
    p integer NOT NULL,
    orchestration text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    status smallint NOT NULL,
    created_ms bigint NOT NULL,
    updated_ms bigint NOT NULL,
    detail text NOT NULL,
    turns bigint NOT NULL,
    history_seq bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0);
CREATE INDEX instances_newest ON instances (created_ms DESC, instance);
CREATE INDEX instances_live ON instances (p, orchestration) WHERE status NOT IN (4, 5, 6);
CREATE INDEX instances_blocked ON instances (p) WHERE status IN (2, 3);
COMMENT ON TABLE instances IS 'One row for each instance: its last known state';
COMMENT ON COLUMN instances.instance IS 'The id that its user chose';
COMMENT ON COLUMN instances.p IS 'Partition of the instance';
COMMENT ON COLUMN instances.orchestration IS 'Registered name of the orchestration';
COMMENT ON COLUMN instances.execution IS 'Latest execution, from 1';
COMMENT ON COLUMN instances.status IS '1 running, 2 waiting for code, 3 stuck, 4 completed, 5 failed, 6 cancelled';
COMMENT ON COLUMN instances.created_ms IS 'Logical time of the first turn, milliseconds since 1970 UTC';
COMMENT ON COLUMN instances.updated_ms IS 'Logical time of the last turn';
COMMENT ON COLUMN instances.detail IS 'Why it waits or is stuck, or the head of its failure text; else empty';
COMMENT ON COLUMN instances.turns IS 'Number of the last turn';
COMMENT ON COLUMN instances.history_seq IS 'Sequence of the last turn''s record in the history stream; the row never goes back';
COMMENT ON INDEX instances_newest IS 'Listing, newest first';
COMMENT ON INDEX instances_live IS 'Which orchestrations a partition still needs';
COMMENT ON INDEX instances_blocked IS 'What a new owner tries again';

CREATE TABLE executions (
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    p integer NOT NULL,
    status smallint NOT NULL,
    started_ms bigint NOT NULL,
    ended_ms bigint,
    turns bigint NOT NULL,
    history_seq bigint NOT NULL,
    PRIMARY KEY (instance, execution)
) WITH (fillfactor = 80, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05,
        autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE executions IS 'One row for each execution of each instance';
COMMENT ON COLUMN executions.instance IS 'The instance';
COMMENT ON COLUMN executions.execution IS 'Number of the execution, from 1';
COMMENT ON COLUMN executions.p IS 'Partition of the instance';
COMMENT ON COLUMN executions.status IS 'As in instances';
COMMENT ON COLUMN executions.started_ms IS 'Logical time of its first projected turn, milliseconds since 1970 UTC';
COMMENT ON COLUMN executions.ended_ms IS 'Logical time of its last turn once it has ended, else NULL';
COMMENT ON COLUMN executions.turns IS 'Number of its last turn';
COMMENT ON COLUMN executions.history_seq IS 'Sequence of that turn''s record in the history stream';
