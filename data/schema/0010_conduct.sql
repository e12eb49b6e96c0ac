-- How servers behave: what is remembered of each source's, and what stands until it is mended.

ALTER TABLE schedule ADD COLUMN body_at TIMESTAMPTZ;
ALTER TABLE schedule ADD COLUMN n_not_modified INTEGER;
ALTER TABLE schedule ADD COLUMN n_expected DOUBLE;
ALTER TABLE schedule ADD COLUMN distrusted_at TIMESTAMPTZ;
ALTER TABLE schedule ADD COLUMN moved_to VARCHAR;
ALTER TABLE schedule ADD COLUMN moved_since TIMESTAMPTZ;
ALTER TABLE schedule ADD COLUMN n_moved INTEGER;
ALTER TABLE schedule ADD COLUMN address VARCHAR;
ALTER TABLE schedule ADD COLUMN address_of VARCHAR;
ALTER TABLE schedule ADD COLUMN n_gone INTEGER;
UPDATE schedule SET n_not_modified = 0, n_expected = 0, n_moved = 0, n_gone = 0;
COMMENT ON COLUMN schedule.body_at IS 'When its list last came whole';
COMMENT ON COLUMN schedule.n_not_modified IS 'Answers "not modified" in a row since then';
COMMENT ON COLUMN schedule.n_expected IS 'Entries that should have come out meanwhile, by the source''s habits';
COMMENT ON COLUMN schedule.distrusted_at IS 'Since when etag and last_modified are not sent, as they lied; empty while they are';
COMMENT ON COLUMN schedule.moved_to IS 'Where its address redirects to for good; not followed until confirmed over days';
COMMENT ON COLUMN schedule.moved_since IS 'When that was first seen';
COMMENT ON COLUMN schedule.n_moved IS 'In how many polls it was';
COMMENT ON COLUMN schedule.address IS 'Address that is polled in place of the catalogue''s, since a move was confirmed';
COMMENT ON COLUMN schedule.address_of IS 'The catalogue''s address it stands in for';
COMMENT ON COLUMN schedule.n_gone IS 'Answers "gone" (410) in a row';

CREATE TABLE incidents (
    incident_id VARCHAR NOT NULL,
    kind        VARCHAR NOT NULL,
    subject     VARCHAR NOT NULL,
    begun_at    TIMESTAMPTZ NOT NULL,
    ended_at    TIMESTAMPTZ,
    reason      VARCHAR NOT NULL,
    evidence    JSON NOT NULL
);
COMMENT ON TABLE incidents IS 'What went wrong with a source, a host or our own line, from when until when';
COMMENT ON COLUMN incidents.incident_id IS 'Digest of kind, subject and begin; notices of it have it as story_id';
COMMENT ON COLUMN incidents.kind IS 'outage (our own line), host (many sources of one domain), held (a domain asked for quiet), failing, gone, moved, validators (of a source)';
COMMENT ON COLUMN incidents.subject IS 'The source or the registered domain; empty for our own line';
COMMENT ON COLUMN incidents.begun_at IS 'When it was concluded';
COMMENT ON COLUMN incidents.ended_at IS 'When it was over; empty while it stands';
COMMENT ON COLUMN incidents.reason IS 'What happened, in one line';
COMMENT ON COLUMN incidents.evidence IS 'What that was concluded from';
