-- Tries with deadlines, completion from outside, and what instances have beyond their first version: versions
-- of their code, a status of their own, parents, an end without their code, pauses, continuing as new.

-- A try that has a timeout gets its deadline with its first claim. Rows without one are in neither of the new
-- indexes, so that their claims and renewals stay HOT.
ALTER TABLE worker_queue
    ADD COLUMN try_number integer NOT NULL DEFAULT 1,
    ADD COLUMN try_timeout_ms bigint NOT NULL DEFAULT 0,
    ADD COLUMN details bytea NOT NULL DEFAULT '',
    ADD COLUMN later boolean NOT NULL DEFAULT false;
CREATE INDEX worker_queue_deadline ON worker_queue (p, deadline_at) WHERE deadline_at IS NOT NULL;
CREATE INDEX worker_queue_timed ON worker_queue (p, try_timeout_ms)
    WHERE deadline_at IS NULL AND try_timeout_ms > 0;
COMMENT ON COLUMN worker_queue.attempt IS 'Grows with every claim of the try; with try_number and worker, the fence of the lease';
COMMENT ON COLUMN worker_queue.deadline_at IS 'When the try has to be over, written by its first claim; NULL: not claimed yet, or no limit';
COMMENT ON COLUMN worker_queue.try_number IS 'Which try of the retry policy this row is, from 1; the next try replaces it';
COMMENT ON COLUMN worker_queue.try_timeout_ms IS 'From the first claim of the try to its deadline; 0: no limit';
COMMENT ON COLUMN worker_queue.details IS 'What the last heartbeat said, of this try or of the one before; empty: nothing';
COMMENT ON COLUMN worker_queue.later IS 'True: no worker holds it, somebody completes it from outside; the deadline still counts';
COMMENT ON INDEX worker_queue_deadline IS 'The next deadlines of a partition; empty while there are none';
COMMENT ON INDEX worker_queue_timed IS 'What gets a deadline as soon as it is claimed';

ALTER TABLE instances
    ADD COLUMN version integer NOT NULL DEFAULT 0,
    ADD COLUMN custom_status bytea,
    ADD COLUMN parent text COLLATE "C" NOT NULL DEFAULT '';
DROP INDEX instances_live;
CREATE INDEX instances_live ON instances (p, orchestration, version) WHERE status NOT IN (4, 5, 6, 7);
DROP INDEX instances_blocked;
CREATE INDEX instances_blocked ON instances (p) WHERE status IN (2, 3, 9);
CREATE INDEX instances_status ON instances (status, created_ms DESC, instance) WHERE status <> 4;
CREATE INDEX instances_parent ON instances (parent, created_ms DESC, instance) WHERE parent <> '';
COMMENT ON TABLE instances IS 'One row for each instance: its last known state. Execution 0: events wait for one that was not started yet';
COMMENT ON COLUMN instances.orchestration IS 'Registered name of the orchestration; empty while the execution is 0';
COMMENT ON COLUMN instances.execution IS 'Latest execution, from 1; 0: there is none yet';
COMMENT ON COLUMN instances.status IS '1 running, 2 waiting for code, 3 stuck, 4 completed, 5 failed, 6 cancelled, 7 terminated, 8 paused, 9 continued as new';
COMMENT ON COLUMN instances.version IS 'Version of the orchestration''s code; 0: not chosen yet';
COMMENT ON COLUMN instances.custom_status IS 'What its code last said of itself; NULL or empty: nothing';
COMMENT ON COLUMN instances.parent IS 'The instance whose child it is; empty: nobody''s';
COMMENT ON INDEX instances_status IS 'Listing by status, newest first; most are completed, and found by instances_newest';
COMMENT ON INDEX instances_parent IS 'Listing the children of an instance';
