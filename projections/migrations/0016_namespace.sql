-- Whose rows these are. NATS has the same identity among the settings of the namespace: with another one there the
-- rows belong to other histories, and nothing is changed.
CREATE TABLE namespace (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    identity uuid NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE namespace IS 'One row at most: which namespace the rows are of';
COMMENT ON COLUMN namespace.one IS 'Always true';
COMMENT ON COLUMN namespace.identity IS 'The same as in NATS; another one after each accepted loss';
COMMENT ON COLUMN namespace.since IS 'When it was noted here';

-- What somebody has given up: thole recover. NATS has it among the settings, too.
CREATE TABLE losses (
    accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    identity text NOT NULL,
    successor text NOT NULL,
    actor text NOT NULL,
    reason text NOT NULL,
    what text NOT NULL
);
COMMENT ON TABLE losses IS 'One row for each loss of histories or messages that somebody has accepted';
COMMENT ON COLUMN losses.accepted_at IS 'When';
COMMENT ON COLUMN losses.identity IS 'Identity of the namespace before; empty: it had none';
COMMENT ON COLUMN losses.successor IS 'And from then on';
COMMENT ON COLUMN losses.actor IS 'Who has accepted it, as stated';
COMMENT ON COLUMN losses.reason IS 'Why';
COMMENT ON COLUMN losses.what IS 'What was lost, in words';

-- Which record the log of a partition has had for ten minutes: a server that lost its power may lose younger ones, but
-- a log without that record is another one, or an older one.
ALTER TABLE partitions
    ADD COLUMN kept_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN kept_mark bigint NOT NULL DEFAULT 0,
    ADD COLUMN later_seq bigint NOT NULL DEFAULT 0,
    ADD COLUMN later_mark bigint NOT NULL DEFAULT 0,
    ADD COLUMN later_at timestamptz NOT NULL DEFAULT '-infinity';
UPDATE partitions SET later_seq = projected_seq, later_mark = projected_mark, later_at = updated_at;
COMMENT ON COLUMN partitions.kept_seq IS 'Stream sequence of a record that the log has had for ten minutes or longer; 0: none';
COMMENT ON COLUMN partitions.kept_mark IS 'Digest of that record; 0: not known';
COMMENT ON COLUMN partitions.later_seq IS 'Stream sequence of the record that is the next one to be such';
COMMENT ON COLUMN partitions.later_mark IS 'Digest of that record; 0: not known';
COMMENT ON COLUMN partitions.later_at IS 'When it was projected at the latest';
