-- An activity whose name no worker of its queue knows is not in flight: its work message is removed, so that it takes no
-- place among those that are delivered, and its row says so. The engine publishes the message again when a worker says
-- that it knows the name.
ALTER TABLE worker_queue
    ADD COLUMN shelved_at timestamptz;
COMMENT ON COLUMN worker_queue.shelved_at IS 'When its message was removed from the queue, since no worker of it knew the activity; NULL: it is in the queue, or with a worker';
-- Almost always empty. A claim writes NULL where there is NULL, which leaves it a HOT update.
CREATE INDEX worker_queue_shelved ON worker_queue (p, queue, activity) WHERE shelved_at IS NOT NULL;
COMMENT ON INDEX worker_queue_shelved IS 'Which names no worker knows, and their activities';

-- Workers write it with a claim: whoever may write a lease may write it.
DO $$
DECLARE
    of record;
BEGIN
    FOR of IN SELECT DISTINCT grantee FROM information_schema.column_privileges
        WHERE table_schema = current_schema() AND table_name = 'worker_queue' AND column_name = 'lease_until'
        AND privilege_type = 'UPDATE' AND grantee <> 'PUBLIC' LOOP
        EXECUTE pg_catalog.format('GRANT UPDATE (shelved_at) ON worker_queue TO %I', of.grantee);
    END LOOP;
END
$$;
