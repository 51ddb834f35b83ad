-- Rows that somebody else removes (an operator, a restored dump) are missed by nobody until an instance does not
-- go on. A session of thole says so with the setting thole.own; whoever does not, makes the owners open their
-- partitions again and project everything. Deletions of thole's own cost one look at the setting for each statement.
CREATE FUNCTION rows_were_removed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('UPDATE %I.partitions SET epoch = epoch + 1, projected_seq = 0, projected_mark = 0',
                              TG_TABLE_SCHEMA);
    PERFORM pg_catalog.pg_notify(TG_TABLE_SCHEMA, TG_TABLE_NAME);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION rows_were_removed() IS 'Fences the owners of all partitions and lets them make the rows anew';

CREATE TRIGGER foreign_removal AFTER DELETE OR TRUNCATE ON worker_queue FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE OR TRUNCATE ON timers FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE OR TRUNCATE ON instances FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE OR TRUNCATE ON executions FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();
CREATE TRIGGER foreign_removal AFTER DELETE OR TRUNCATE ON quarantine FOR EACH STATEMENT
    WHEN (current_setting('thole.own', true) IS DISTINCT FROM 'on') EXECUTE FUNCTION rows_were_removed();

-- Tables that were dropped are made again by the first connection that misses them: the others hear of it.
SELECT pg_catalog.pg_notify(current_schema(), 'made');
