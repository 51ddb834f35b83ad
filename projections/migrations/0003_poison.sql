-- What kills its workers. Claims whose worker never reported: a try that was lost often enough is claimed apart
-- from others, and what is lost then counts against it. NULL while there is nothing to say, which costs nothing.
ALTER TABLE worker_queue
    ADD COLUMN lost bigint[],
    ADD COLUMN strikes bigint[],
    ADD COLUMN apart boolean NOT NULL DEFAULT false,
    ADD COLUMN lost_worker text COLLATE "C";
COMMENT ON COLUMN worker_queue.lost IS 'Attempts of this try whose worker never reported: it died, or nobody has heard of it for a lease';
COMMENT ON COLUMN worker_queue.strikes IS 'Those of them that were lost while they ran apart from others: they count against the activity';
COMMENT ON COLUMN worker_queue.apart IS 'The last claim was made apart, and has not settled since: nothing else was started beside it';
COMMENT ON COLUMN worker_queue.lost_worker IS 'Incarnation of the worker with which it was lost last; NULL: never';

-- In the history too, so it can be made again like everything else here.
CREATE TABLE quarantine (
    instance text COLLATE "C" NOT NULL,
    execution bigint NOT NULL,
    activity_id bigint NOT NULL,
    p integer NOT NULL,
    queue text COLLATE "C" NOT NULL,
    activity text COLLATE "C" NOT NULL,
    try_number integer NOT NULL,
    lost integer NOT NULL,
    worker text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    since_ms bigint NOT NULL,
    until_ms bigint NOT NULL,
    PRIMARY KEY (instance, execution, activity_id)
);
CREATE INDEX quarantine_newest ON quarantine (since_ms DESC, instance, execution, activity_id);
COMMENT ON TABLE quarantine IS 'One row for each activity that is not run any more because it was lost with its workers, until somebody decides';
COMMENT ON COLUMN quarantine.instance IS 'Instance that scheduled the activity';
COMMENT ON COLUMN quarantine.execution IS 'Its execution, from 1';
COMMENT ON COLUMN quarantine.activity_id IS 'Event id of the scheduling event in that execution';
COMMENT ON COLUMN quarantine.p IS 'Partition of the instance';
COMMENT ON COLUMN quarantine.queue IS 'Queue in which it was and will be';
COMMENT ON COLUMN quarantine.activity IS 'Registered name of the activity';
COMMENT ON COLUMN quarantine.try_number IS 'Which try it was, from 1';
COMMENT ON COLUMN quarantine.lost IS 'How many of its claims were lost';
COMMENT ON COLUMN quarantine.worker IS 'Incarnation of the worker with which it was lost last';
COMMENT ON COLUMN quarantine.reason IS 'Why it is here, in words';
COMMENT ON COLUMN quarantine.since_ms IS 'When it came here: milliseconds since 1970, of the turn';
COMMENT ON COLUMN quarantine.until_ms IS 'When it fails unless somebody decides before; 0: it stays';
COMMENT ON INDEX quarantine_newest IS 'Listing, newest first';
