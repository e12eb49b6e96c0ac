-- What the drift detectors remember: features of pages, how each source stands, repairs.
ALTER TABLE pages ADD COLUMN profile BLOB;
COMMENT ON COLUMN pages.profile IS 'All measures of an article page, packed, as the detectors read them; empty for other pages';

ALTER TABLE page_verdicts ADD COLUMN evidence DOUBLE;
ALTER TABLE page_verdicts ADD COLUMN gate VARCHAR;
COMMENT ON COLUMN page_verdicts.evidence IS 'Evidence for a change after this page, as a power of ten; an alarm is at 4';
COMMENT ON COLUMN page_verdicts.gate IS 'The hard gate that stopped the page before it was compared: status, type, wall or empty; empty where none did';
COMMENT ON TABLE page_verdicts IS 'What the operational detector says of one article page, stored with its article';

ALTER TABLE drift_checks ADD COLUMN outcome VARCHAR;
ALTER TABLE drift_checks ADD COLUMN detail VARCHAR;
ALTER TABLE drift_checks ADD COLUMN document VARCHAR;
ALTER TABLE drift_checks ADD COLUMN cpu_s DOUBLE;
COMMENT ON COLUMN drift_checks.outcome IS 'The check as a whole: passed, drifted, or not evaluated, which is a failure';
COMMENT ON COLUMN drift_checks.detail IS 'What this criterion says, in words';
COMMENT ON COLUMN drift_checks.document IS 'File with all findings as a page, relative to the warehouse folder; the last one of each source is kept';
COMMENT ON COLUMN drift_checks.cpu_s IS 'Processor seconds of the check';

ALTER TABLE reference_models ADD COLUMN state BLOB;
ALTER TABLE reference_models ADD COLUMN score DOUBLE;
ALTER TABLE reference_models ADD COLUMN note VARCHAR;
COMMENT ON COLUMN reference_models.state IS 'Everything learned, as the worker reads it; other programs read parameters';
COMMENT ON COLUMN reference_models.score IS 'Share of its own pages that it finds suspicious when they are held out';
COMMENT ON COLUMN reference_models.note IS 'Why it was built, or why a new one was refused and this one stays';
COMMENT ON TABLE reference_models IS 'What correct pages of a source look like, for the drift detectors: one row per source; the row without a source is shared by those that have few pages';

CREATE TABLE drift_states (
    source       VARCHAR NOT NULL,
    updated_at   TIMESTAMPTZ NOT NULL,
    standing     VARCHAR NOT NULL,
    monitor      BLOB,
    learn_from   VARCHAR NOT NULL,
    clean_before VARCHAR NOT NULL,
    since_page   VARCHAR,
    since_at     TIMESTAMPTZ,
    channel      VARCHAR,
    place_before VARCHAR,
    place_after  VARCHAR,
    reason       VARCHAR NOT NULL,
    n_pages      INTEGER NOT NULL,
    n_unchecked  INTEGER NOT NULL
);
COMMENT ON TABLE drift_states IS 'How each source stands with the drift detectors: one row per source';
COMMENT ON COLUMN drift_states.source IS 'The source';
COMMENT ON COLUMN drift_states.updated_at IS 'When this last changed';
COMMENT ON COLUMN drift_states.standing IS 'learning (too few pages yet), watching, layout (changed, the text is right) or text (wrong)';
COMMENT ON COLUMN drift_states.monitor IS 'Evidence gathered so far, as the worker reads it';
COMMENT ON COLUMN drift_states.learn_from IS 'First page that belongs to the present layout';
COMMENT ON COLUMN drift_states.clean_before IS 'Pages before this one are older than the last window found clean: a reference may be learnt from them';
COMMENT ON COLUMN drift_states.since_page IS 'First suspect page, where the source drifted';
COMMENT ON COLUMN drift_states.since_at IS 'When that page was fetched';
COMMENT ON COLUMN drift_states.channel IS 'The measure that led';
COMMENT ON COLUMN drift_states.place_before IS 'Where on the page the text came from before';
COMMENT ON COLUMN drift_states.place_after IS 'Where it comes from now';
COMMENT ON COLUMN drift_states.reason IS 'What changed, in words; empty where nothing did';
COMMENT ON COLUMN drift_states.n_pages IS 'Article pages since learn_from';
COMMENT ON COLUMN drift_states.n_unchecked IS 'Article pages since the last check of a set';

CREATE TABLE repairs (
    repair_id     VARCHAR NOT NULL,
    source        VARCHAR NOT NULL,
    proposed_at   TIMESTAMPTZ NOT NULL,
    way           VARCHAR NOT NULL,
    selector      VARCHAR,
    state         VARCHAR NOT NULL,
    settled_at    TIMESTAMPTZ,
    n_pages       INTEGER NOT NULL,
    n_fitting     INTEGER NOT NULL,
    n_fitting_now INTEGER NOT NULL,
    is_clear      BOOLEAN NOT NULL,
    evidence      JSON NOT NULL,
    basis         JSON NOT NULL
);
COMMENT ON TABLE repairs IS 'Other ways to get the text of a source whose text went wrong, with evidence';
COMMENT ON COLUMN repairs.repair_id IS 'Digest of source, moment and way';
COMMENT ON COLUMN repairs.source IS 'The source';
COMMENT ON COLUMN repairs.proposed_at IS 'When it was found';
COMMENT ON COLUMN repairs.way IS 'How the text would be got: json-ld, precise, generous, readable, css and so on';
COMMENT ON COLUMN repairs.selector IS 'CSS of the text, where the way is css';
COMMENT ON COLUMN repairs.state IS 'proposed, adopted, or dropped';
COMMENT ON COLUMN repairs.settled_at IS 'When it was adopted or dropped';
COMMENT ON COLUMN repairs.n_pages IS 'Suspect pages it was tried on';
COMMENT ON COLUMN repairs.n_fitting IS 'Of those, how many then look like the reference';
COMMENT ON COLUMN repairs.n_fitting_now IS 'How many of them look like it without the repair';
COMMENT ON COLUMN repairs.is_clear IS 'True where it is good enough to be adopted by itself';
COMMENT ON COLUMN repairs.evidence IS 'Every way that was tried, with its figures';
COMMENT ON COLUMN repairs.basis IS 'The [extract] rules it stands in for: once they change, it no longer holds';
