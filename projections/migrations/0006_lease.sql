-- The row carries the lease: who may run a try is decided here, and by nobody else. Also, what is missing after
-- the database lost its last transactions is told from what is gone.
ALTER TABLE worker_queue
    ADD COLUMN lease_until timestamptz;
COMMENT ON COLUMN worker_queue.lease_until IS 'Until when nobody else may claim it, by the database''s clock; NULL: never claimed, or handed back';
COMMENT ON COLUMN worker_queue.attempt IS 'Grows with every claim of the try';
COMMENT ON COLUMN worker_queue.worker IS 'Incarnation of the worker that claimed it last: it alone may renew and complete; NULL before, and after it was given back';

-- Unlogged: empty after a crash of the server and after the promotion of a replica, as it was after a clean restart.
CREATE UNLOGGED TABLE incarnation (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid()
);
COMMENT ON TABLE incarnation IS 'One row at most: the time since the database last lost anything. Whoever finds none makes one';
COMMENT ON COLUMN incarnation.one IS 'Always true';
COMMENT ON COLUMN incarnation.id IS 'Another one after each loss';
ALTER TABLE partitions
    ADD COLUMN incarnation uuid;
COMMENT ON COLUMN partitions.incarnation IS 'For which incarnation the rows of the partition are complete: only then a row that is missing is gone. NULL: for none';
