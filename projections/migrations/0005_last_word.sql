-- What is known of the end of the worker that a try was lost with last. NULL while there is nothing to say, which
-- costs nothing.
ALTER TABLE worker_queue
    ADD COLUMN lost_word text;
COMMENT ON COLUMN worker_queue.lost_word IS 'Last word of the worker lost_worker, for people; NULL: nobody heard one';
