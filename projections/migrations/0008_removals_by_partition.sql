-- Whose rows somebody else removes is known from the rows: only those partitions are fenced and made anew, and the
-- notification names each. Whoever truncates a table removes the rows of all, as before: the notification names the table.
CREATE FUNCTION rows_of_partitions_were_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('UPDATE %I.partitions SET epoch = epoch + 1, projected_seq = 0, projected_mark = 0'
                              ' WHERE p IN (SELECT p FROM removed)',
                              TG_TABLE_SCHEMA);
    PERFORM pg_catalog.pg_notify(TG_TABLE_SCHEMA, p::text) FROM (SELECT DISTINCT p FROM removed) AS partitions;
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION rows_of_partitions_were_removed() IS
    'Fences the owners of the partitions whose rows are removed and lets them make the rows anew';

DROP TRIGGER foreign_removal ON worker_queue;
DROP TRIGGER foreign_removal ON timers;
DROP TRIGGER foreign_removal ON instances;
DROP TRIGGER foreign_removal ON executions;
DROP TRIGGER foreign_removal ON quarantine;

CREATE TRIGGER foreign_truncation AFTER TRUNCATE ON worker_queue FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_truncation AFTER TRUNCATE ON timers FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_truncation AFTER TRUNCATE ON instances FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_truncation AFTER TRUNCATE ON executions FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_truncation AFTER TRUNCATE ON quarantine FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();

CREATE TRIGGER foreign_removal AFTER DELETE ON worker_queue REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION rows_of_partitions_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE ON timers REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION rows_of_partitions_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE ON instances REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION rows_of_partitions_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE ON executions REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION rows_of_partitions_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE ON quarantine REFERENCING OLD TABLE AS removed FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION rows_of_partitions_were_removed();
