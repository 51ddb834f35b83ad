-- Claims whose worker never reported. A try that was lost often enough is claimed apart from others, and what
-- is lost then counts against it. NULL while there is nothing to say, which costs nothing.
ALTER TABLE worker_queue
    ADD COLUMN lost bigint[],
    ADD COLUMN strikes bigint[],
    ADD COLUMN apart boolean NOT NULL DEFAULT false,
    ADD COLUMN lost_worker text COLLATE "C";
COMMENT ON COLUMN worker_queue.lost IS 'Attempts of this try whose worker never reported: it died, or nobody has heard of it for a lease';
COMMENT ON COLUMN worker_queue.strikes IS 'Those of them that were lost while they ran apart from others: they count against the activity';
COMMENT ON COLUMN worker_queue.apart IS 'The last claim was made apart, and has not settled since: nothing else was started beside it';
COMMENT ON COLUMN worker_queue.lost_worker IS 'Incarnation of the worker with which it was lost last; NULL: never';
