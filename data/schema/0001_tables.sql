-- All tables of the warehouse. Migrations are append-only: once released, a file is
-- never edited; a later change is a new file with the next number.
--
-- Three rules hold for every table, each for a reason met in DuckDB 1.5.5:
--   * no function defaults such as now(): a served table with one cannot be attached;
--   * no secondary indexes, and a primary key only where storing twice must change
--     nothing: an index lives in memory, and every update has to pass it;
--   * facts are only ever added to. What changes (sources, schedule, articles,
--     pending_articles) has no key: an update of a wide row is a delete and an insert,
--     and without an index the two can never meet in a constraint. The two *_heads
--     tables have a key and are updated in place, in narrow columns outside the key.
-- All times are UTC.

CREATE TABLE sources (
    source         VARCHAR NOT NULL,
    title          VARCHAR NOT NULL,
    url            VARCHAR NOT NULL,
    kind           VARCHAR NOT NULL,
    language       VARCHAR,
    timezone       VARCHAR NOT NULL,
    country        VARCHAR,
    tags           VARCHAR[],
    weight         DOUBLE NOT NULL,
    reach          VARCHAR NOT NULL,
    policy         VARCHAR NOT NULL,
    interval_s     DOUBLE NOT NULL,
    is_listed      BOOLEAN NOT NULL,
    read_at        TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE sources IS 'The catalogue: a publisher that is watched, as last read from data/sources';
COMMENT ON COLUMN sources.source IS 'Short name of the source, used everywhere';
COMMENT ON COLUMN sources.title IS 'Name for people';
COMMENT ON COLUMN sources.url IS 'Address that is polled';
COMMENT ON COLUMN sources.kind IS 'How the address is read: feed, sitemap, list, telegram and so on; auto finds out';
COMMENT ON COLUMN sources.language IS 'Main language, as a two-letter code';
COMMENT ON COLUMN sources.timezone IS 'IANA zone of the publisher; dates without a zone are read in it';
COMMENT ON COLUMN sources.country IS 'Country of the publisher, as a two-letter code';
COMMENT ON COLUMN sources.tags IS 'Free tags from the catalogue';
COMMENT ON COLUMN sources.weight IS 'Importance; 1 is ordinary, larger matters more';
COMMENT ON COLUMN sources.reach IS 'wide, local or trade: which keyword rules apply';
COMMENT ON COLUMN sources.policy IS 'Polling policy the catalogue asks for';
COMMENT ON COLUMN sources.interval_s IS 'Wait between polls the catalogue asks for, in seconds';
COMMENT ON COLUMN sources.is_listed IS 'False once the source has been taken out of the catalogue';
COMMENT ON COLUMN sources.read_at IS 'When this row was last read from the catalogue and differed';

CREATE TABLE schedule (
    source               VARCHAR NOT NULL,
    due_at               TIMESTAMPTZ NOT NULL,
    reason               VARCHAR NOT NULL,
    state                VARCHAR NOT NULL,
    cycle                BIGINT NOT NULL,
    consecutive_failures INTEGER NOT NULL,
    etag                 VARCHAR,
    last_modified        VARCHAR,
    validators_url       VARCHAR,
    host_not_before      TIMESTAMPTZ,
    lease_until          TIMESTAMPTZ,
    body_sha256          VARCHAR,
    last_success_at      TIMESTAMPTZ
);
COMMENT ON TABLE schedule IS 'What comes next for each source: the truth that Prefect''s runs are made from';
COMMENT ON COLUMN schedule.source IS 'Short name of the source; one row each';
COMMENT ON COLUMN schedule.due_at IS 'When the next poll is due';
COMMENT ON COLUMN schedule.reason IS 'Why then, or why the source is paused, in one sentence';
COMMENT ON COLUMN schedule.state IS 'active, paused, failing, drifted or gone';
COMMENT ON COLUMN schedule.cycle IS 'Number of the poll that is due; a run claims it, then it moves on by one';
COMMENT ON COLUMN schedule.consecutive_failures IS 'Failed polls in a row up to now';
COMMENT ON COLUMN schedule.etag IS 'ETag of the last listing, sent back with the next request';
COMMENT ON COLUMN schedule.last_modified IS 'Last-Modified of the last listing, sent back with the next request';
COMMENT ON COLUMN schedule.validators_url IS 'Address that gave etag and last_modified; empty means the source''s own';
COMMENT ON COLUMN schedule.host_not_before IS 'The host asked not to be visited before this time';
COMMENT ON COLUMN schedule.lease_until IS 'A poll is under way and must be over by then; empty when none is';
COMMENT ON COLUMN schedule.body_sha256 IS 'Digest of the last listing: the same bytes again are nothing new';
COMMENT ON COLUMN schedule.last_success_at IS 'End of the last poll that did not fail';

CREATE TABLE polls (
    poll_id         VARCHAR PRIMARY KEY,
    source          VARCHAR NOT NULL,
    cycle           BIGINT NOT NULL,
    due_at          TIMESTAMPTZ NOT NULL,
    started_at      TIMESTAMPTZ NOT NULL,
    finished_at     TIMESTAMPTZ NOT NULL,
    outcome         VARCHAR NOT NULL,
    http_status     INTEGER,
    reason          VARCHAR NOT NULL,
    entries_listed  INTEGER NOT NULL,
    entries_new     INTEGER NOT NULL,
    articles_stored INTEGER NOT NULL,
    mean_lag_s      DOUBLE,
    overlap         BOOLEAN,
    possible_loss   BOOLEAN NOT NULL,
    index_bytes     BIGINT NOT NULL,
    article_bytes   BIGINT NOT NULL,
    cpu_s           DOUBLE NOT NULL,
    policy          VARCHAR NOT NULL,
    next_due_at     TIMESTAMPTZ NOT NULL,
    next_reason     VARCHAR NOT NULL,
    decision        JSON NOT NULL
);
COMMENT ON TABLE polls IS 'One look at a source, whatever came of it';
COMMENT ON COLUMN polls.poll_id IS 'Source and cycle, joined by #';
COMMENT ON COLUMN polls.source IS 'Whom it looked at';
COMMENT ON COLUMN polls.cycle IS 'Number of the poll within its source';
COMMENT ON COLUMN polls.due_at IS 'When it was due';
COMMENT ON COLUMN polls.started_at IS 'When it began';
COMMENT ON COLUMN polls.finished_at IS 'When it was over';
COMMENT ON COLUMN polls.outcome IS 'new, empty, not_modified, failed or refused; a failed poll is never an empty one';
COMMENT ON COLUMN polls.http_status IS 'HTTP status of the listing, where an answer came';
COMMENT ON COLUMN polls.reason IS 'What went wrong, empty when nothing did';
COMMENT ON COLUMN polls.entries_listed IS 'Entries the listing showed';
COMMENT ON COLUMN polls.entries_new IS 'Entries seen for the first time';
COMMENT ON COLUMN polls.articles_stored IS 'Articles and new versions the poll brought';
COMMENT ON COLUMN polls.mean_lag_s IS 'Mean publication lag of the new articles, in seconds; empty where none could be told';
COMMENT ON COLUMN polls.overlap IS 'True when the listing still showed an entry we knew; empty when that cannot be told';
COMMENT ON COLUMN polls.possible_loss IS 'True when no listed entry was known: some may have come and gone unseen';
COMMENT ON COLUMN polls.index_bytes IS 'Bytes received for the listing';
COMMENT ON COLUMN polls.article_bytes IS 'Bytes received for article pages';
COMMENT ON COLUMN polls.cpu_s IS 'Processor seconds spent, extraction included';
COMMENT ON COLUMN polls.policy IS 'Policy that chose the next poll';
COMMENT ON COLUMN polls.next_due_at IS 'When the next poll was set';
COMMENT ON COLUMN polls.next_reason IS 'Why then, in one sentence';
COMMENT ON COLUMN polls.decision IS 'Everything that choice was made from; fed back in, it gives the same choice';

CREATE TABLE entries (
    entry_id            VARCHAR PRIMARY KEY,
    source              VARCHAR NOT NULL,
    url                 VARCHAR NOT NULL,
    guid                VARCHAR,
    title               VARCHAR,
    summary             VARCHAR,
    authors             VARCHAR[],
    published_at        TIMESTAMPTZ,
    published_precision VARCHAR,
    published_basis     VARCHAR,
    updated_at          TIMESTAMPTZ,
    first_seen_at       TIMESTAMPTZ NOT NULL,
    poll_id             VARCHAR NOT NULL,
    is_backlog          BOOLEAN NOT NULL,
    fingerprint         VARCHAR NOT NULL
);
COMMENT ON TABLE entries IS 'An item as a listing first showed it';
COMMENT ON COLUMN entries.entry_id IS 'Digest of source and identifier (or address)';
COMMENT ON COLUMN entries.source IS 'Who listed it';
COMMENT ON COLUMN entries.url IS 'Address of the article';
COMMENT ON COLUMN entries.guid IS 'The publisher''s own identifier, where one is given';
COMMENT ON COLUMN entries.title IS 'Headline in the listing';
COMMENT ON COLUMN entries.summary IS 'Summary in the listing, markup removed';
COMMENT ON COLUMN entries.authors IS 'Authors named in the listing';
COMMENT ON COLUMN entries.published_at IS 'Publication time the listing declares';
COMMENT ON COLUMN entries.published_precision IS 'How exact that time is: instant, minute or day';
COMMENT ON COLUMN entries.published_basis IS 'Field of the listing that time was read from';
COMMENT ON COLUMN entries.updated_at IS 'Time of the last change the listing declares';
COMMENT ON COLUMN entries.first_seen_at IS 'When a poll first saw it';
COMMENT ON COLUMN entries.poll_id IS 'The poll that did';
COMMENT ON COLUMN entries.is_backlog IS 'Already listed at the first successful poll of its source: says nothing about lag';
COMMENT ON COLUMN entries.fingerprint IS 'Digest of the listing, to notice when it changes';

CREATE TABLE entry_heads (
    entry_id    VARCHAR PRIMARY KEY,
    change      INTEGER NOT NULL,
    fingerprint VARCHAR NOT NULL
);
COMMENT ON TABLE entry_heads IS 'Book-keeping: how an entry whose listing changed was last listed';
COMMENT ON COLUMN entry_heads.entry_id IS 'The entry; entries that never changed have no row';
COMMENT ON COLUMN entry_heads.change IS 'Number of its last change';
COMMENT ON COLUMN entry_heads.fingerprint IS 'Digest of the listing after that change';

CREATE TABLE entry_changes (
    entry_id     VARCHAR NOT NULL,
    change       INTEGER NOT NULL,
    source       VARCHAR NOT NULL,
    seen_at      TIMESTAMPTZ NOT NULL,
    poll_id      VARCHAR NOT NULL,
    url          VARCHAR NOT NULL,
    title        VARCHAR,
    summary      VARCHAR,
    published_at TIMESTAMPTZ,
    updated_at   TIMESTAMPTZ,
    fingerprint  VARCHAR NOT NULL
);
COMMENT ON TABLE entry_changes IS 'How the listing of an entry changed after it was first seen';
COMMENT ON COLUMN entry_changes.entry_id IS 'The entry';
COMMENT ON COLUMN entry_changes.change IS 'Number of the change, from 1';
COMMENT ON COLUMN entry_changes.source IS 'Who lists it';
COMMENT ON COLUMN entry_changes.seen_at IS 'When a poll saw the change';
COMMENT ON COLUMN entry_changes.poll_id IS 'The poll that did';
COMMENT ON COLUMN entry_changes.url IS 'Address, as now listed';
COMMENT ON COLUMN entry_changes.title IS 'Headline, as now listed';
COMMENT ON COLUMN entry_changes.summary IS 'Summary, as now listed';
COMMENT ON COLUMN entry_changes.published_at IS 'Publication time, as now declared';
COMMENT ON COLUMN entry_changes.updated_at IS 'Time of the last change, as now declared';
COMMENT ON COLUMN entry_changes.fingerprint IS 'Digest of the listing after the change';

CREATE TABLE articles (
    article_id          VARCHAR NOT NULL,
    entry_id            VARCHAR NOT NULL,
    source              VARCHAR NOT NULL,
    url                 VARCHAR NOT NULL,
    canonical_url       VARCHAR,
    title               VARCHAR,
    text                VARCHAR,
    authors             VARCHAR[],
    language            VARCHAR,
    published_at        TIMESTAMPTZ,
    published_precision VARCHAR,
    published_basis     VARCHAR,
    stored_at           TIMESTAMPTZ NOT NULL,
    publication_lag_s   DOUBLE,
    is_backlog          BOOLEAN NOT NULL,
    version             INTEGER NOT NULL,
    changed_at          TIMESTAMPTZ NOT NULL,
    poll_id             VARCHAR NOT NULL,
    page_id             VARCHAR,
    extraction          VARCHAR NOT NULL,
    kind                VARCHAR NOT NULL,
    warnings            VARCHAR[],
    text_sha256         VARCHAR NOT NULL,
    quarantined         BOOLEAN NOT NULL
);
COMMENT ON TABLE articles IS 'The page behind an entry, extracted: the current version';
COMMENT ON COLUMN articles.article_id IS 'Digest of source and address';
COMMENT ON COLUMN articles.entry_id IS 'The entry that led to it';
COMMENT ON COLUMN articles.source IS 'Who published it';
COMMENT ON COLUMN articles.url IS 'Address it was listed under';
COMMENT ON COLUMN articles.canonical_url IS 'Address the page itself declares';
COMMENT ON COLUMN articles.title IS 'Headline of the current version';
COMMENT ON COLUMN articles.text IS 'Text of the current version';
COMMENT ON COLUMN articles.authors IS 'Authors named on the page';
COMMENT ON COLUMN articles.language IS 'Language of the text, as a two-letter code';
COMMENT ON COLUMN articles.published_at IS 'When it was published, as declared';
COMMENT ON COLUMN articles.published_precision IS 'How exact that time is: instant, minute or day';
COMMENT ON COLUMN articles.published_basis IS 'Where that time comes from';
COMMENT ON COLUMN articles.stored_at IS 'When its first version was stored';
COMMENT ON COLUMN articles.publication_lag_s IS 'stored_at - published_at in seconds; empty where the time is missing, exact only to the day, or lies ahead';
COMMENT ON COLUMN articles.is_backlog IS 'Its entry was listed already when the source was first polled: its lag measures nothing';
COMMENT ON COLUMN articles.version IS 'Number of the current version, from 1';
COMMENT ON COLUMN articles.changed_at IS 'When the current version was stored';
COMMENT ON COLUMN articles.poll_id IS 'The poll that stored the current version';
COMMENT ON COLUMN articles.page_id IS 'The raw page it was extracted from; empty when the listing stands in';
COMMENT ON COLUMN articles.extraction IS 'How the text was got: trafilatura, css, or listing where the page gave none';
COMMENT ON COLUMN articles.kind IS 'article, or empty when the page held no article text';
COMMENT ON COLUMN articles.warnings IS 'What the extraction found odd';
COMMENT ON COLUMN articles.text_sha256 IS 'Digest of the text of the current version';
COMMENT ON COLUMN articles.quarantined IS 'Held back by a check: do not trust the text yet';

CREATE TABLE article_heads (
    article_id     VARCHAR PRIMARY KEY,
    version        INTEGER NOT NULL,
    changed_at     TIMESTAMPTZ NOT NULL,
    is_article     BOOLEAN NOT NULL,
    content_sha256 VARCHAR NOT NULL
);
COMMENT ON TABLE article_heads IS 'Book-keeping: which version of an article is current';
COMMENT ON COLUMN article_heads.article_id IS 'The article';
COMMENT ON COLUMN article_heads.version IS 'Number of its current version';
COMMENT ON COLUMN article_heads.changed_at IS 'When that version was stored; finds its row in articles without an index';
COMMENT ON COLUMN article_heads.is_article IS 'False while a listing stands in for the page';
COMMENT ON COLUMN article_heads.content_sha256 IS 'Digest of title and text of the current version';

CREATE TABLE article_versions (
    article_id  VARCHAR NOT NULL,
    version     INTEGER NOT NULL,
    source      VARCHAR NOT NULL,
    seen_at     TIMESTAMPTZ NOT NULL,
    title       VARCHAR,
    text        VARCHAR,
    text_sha256 VARCHAR NOT NULL,
    page_id     VARCHAR,
    poll_id     VARCHAR NOT NULL
);
COMMENT ON TABLE article_versions IS 'Every version of an article, the first one included';
COMMENT ON COLUMN article_versions.article_id IS 'The article';
COMMENT ON COLUMN article_versions.version IS 'Number of the version, from 1';
COMMENT ON COLUMN article_versions.source IS 'Who published it';
COMMENT ON COLUMN article_versions.seen_at IS 'When this version was stored';
COMMENT ON COLUMN article_versions.title IS 'Headline of this version';
COMMENT ON COLUMN article_versions.text IS 'Text of this version';
COMMENT ON COLUMN article_versions.text_sha256 IS 'Digest of the text';
COMMENT ON COLUMN article_versions.page_id IS 'The raw page it was extracted from';
COMMENT ON COLUMN article_versions.poll_id IS 'The poll that brought it';

CREATE TABLE pending_articles (
    entry_id     VARCHAR NOT NULL,
    source       VARCHAR NOT NULL,
    url          VARCHAR NOT NULL,
    title        VARCHAR,
    summary      VARCHAR,
    published_at TIMESTAMPTZ,
    attempts     INTEGER NOT NULL,
    next_try_at  TIMESTAMPTZ,
    reason       VARCHAR
);
COMMENT ON TABLE pending_articles IS 'Entries whose article page has yet to be had';
COMMENT ON COLUMN pending_articles.entry_id IS 'The entry';
COMMENT ON COLUMN pending_articles.source IS 'Who listed it';
COMMENT ON COLUMN pending_articles.url IS 'Address of the article';
COMMENT ON COLUMN pending_articles.title IS 'Headline in the listing';
COMMENT ON COLUMN pending_articles.summary IS 'Summary in the listing';
COMMENT ON COLUMN pending_articles.published_at IS 'Publication time the listing declares';
COMMENT ON COLUMN pending_articles.attempts IS 'Failed attempts so far';
COMMENT ON COLUMN pending_articles.next_try_at IS 'Not before this time';
COMMENT ON COLUMN pending_articles.reason IS 'Why the last attempt failed';

CREATE TABLE pages (
    page_id     VARCHAR NOT NULL,
    source      VARCHAR NOT NULL,
    url         VARCHAR NOT NULL,
    fetched_at  TIMESTAMPTZ NOT NULL,
    status      INTEGER NOT NULL,
    bytes       BIGINT NOT NULL,
    sha256      VARCHAR NOT NULL,
    warc_file   VARCHAR NOT NULL,
    warc_offset BIGINT NOT NULL,
    poll_id     VARCHAR NOT NULL,
    features    STRUCT(
        page_bytes BIGINT, paragraph_chars BIGINT, n_paragraphs INTEGER, paragraph_variance DOUBLE,
        n_links INTEGER, n_blocks INTEGER, n_formatting INTEGER, n_images INTEGER, n_other INTEGER
    )
);
COMMENT ON TABLE pages IS 'A fetched page, and where its raw bytes lie';
COMMENT ON COLUMN pages.page_id IS 'Sortable by time of fetching';
COMMENT ON COLUMN pages.source IS 'For whom it was fetched';
COMMENT ON COLUMN pages.url IS 'Address that answered, after redirects';
COMMENT ON COLUMN pages.fetched_at IS 'When the last byte came';
COMMENT ON COLUMN pages.status IS 'HTTP status';
COMMENT ON COLUMN pages.bytes IS 'Length of the body after decompression';
COMMENT ON COLUMN pages.sha256 IS 'Digest of that body';
COMMENT ON COLUMN pages.warc_file IS 'WARC file, relative to the warc folder; it is deleted after the days of retention';
COMMENT ON COLUMN pages.warc_offset IS 'Byte offset of the record in it';
COMMENT ON COLUMN pages.poll_id IS 'The poll that fetched it';
COMMENT ON COLUMN pages.features IS 'Measures of an article page for drift detection; empty until measured';

CREATE TABLE intensity_models (
    source     VARCHAR NOT NULL,
    fitted_at  TIMESTAMPTZ NOT NULL,
    kind       VARCHAR NOT NULL,
    parameters JSON NOT NULL,
    score      DOUBLE
);
COMMENT ON TABLE intensity_models IS 'A fitted model of how many entries a source publishes when';
COMMENT ON COLUMN intensity_models.source IS 'Whose habits';
COMMENT ON COLUMN intensity_models.fitted_at IS 'When it was fitted';
COMMENT ON COLUMN intensity_models.kind IS 'Name of the estimator';
COMMENT ON COLUMN intensity_models.parameters IS 'Its parameters';
COMMENT ON COLUMN intensity_models.score IS 'How well it foretold data it had not seen; larger is better';

CREATE TABLE forecasts (
    source           VARCHAR NOT NULL,
    hour_at          TIMESTAMPTZ NOT NULL,
    made_at          TIMESTAMPTZ NOT NULL,
    kind             VARCHAR NOT NULL,
    expected_entries DOUBLE NOT NULL,
    low              DOUBLE,
    high             DOUBLE
);
COMMENT ON TABLE forecasts IS 'Entries expected in an hour that lay ahead when the forecast was made';
COMMENT ON COLUMN forecasts.source IS 'Of whom';
COMMENT ON COLUMN forecasts.hour_at IS 'Start of the hour';
COMMENT ON COLUMN forecasts.made_at IS 'When the forecast was made';
COMMENT ON COLUMN forecasts.kind IS 'Name of the estimator';
COMMENT ON COLUMN forecasts.expected_entries IS 'Expected number of entries';
COMMENT ON COLUMN forecasts.low IS 'Lower end of the likely range';
COMMENT ON COLUMN forecasts.high IS 'Upper end of the likely range';

CREATE TABLE reference_models (
    source     VARCHAR NOT NULL,
    built_at   TIMESTAMPTZ NOT NULL,
    n_pages    INTEGER NOT NULL,
    kind       VARCHAR NOT NULL,
    parameters JSON NOT NULL
);
COMMENT ON TABLE reference_models IS 'What correct pages of a source look like, for the drift detectors';
COMMENT ON COLUMN reference_models.source IS 'Whose pages';
COMMENT ON COLUMN reference_models.built_at IS 'When the reference was built';
COMMENT ON COLUMN reference_models.n_pages IS 'From how many pages';
COMMENT ON COLUMN reference_models.kind IS 'Detector it belongs to';
COMMENT ON COLUMN reference_models.parameters IS 'Its parameters';

CREATE TABLE page_verdicts (
    page_id    VARCHAR NOT NULL,
    source     VARCHAR NOT NULL,
    judged_at  TIMESTAMPTZ NOT NULL,
    score      DOUBLE NOT NULL,
    suspicious BOOLEAN NOT NULL,
    reason     VARCHAR NOT NULL
);
COMMENT ON TABLE page_verdicts IS 'What the operational detector says of one page, at load';
COMMENT ON COLUMN page_verdicts.page_id IS 'The page';
COMMENT ON COLUMN page_verdicts.source IS 'Whose page';
COMMENT ON COLUMN page_verdicts.judged_at IS 'When it was judged';
COMMENT ON COLUMN page_verdicts.score IS 'Distance from the correct pages; larger is stranger';
COMMENT ON COLUMN page_verdicts.suspicious IS 'True when it lies outside all of them';
COMMENT ON COLUMN page_verdicts.reason IS 'What is strange about it';

CREATE TABLE drift_checks (
    check_id    VARCHAR NOT NULL,
    source      VARCHAR NOT NULL,
    checked_at  TIMESTAMPTZ NOT NULL,
    n_reference INTEGER NOT NULL,
    n_test      INTEGER NOT NULL,
    criterion   VARCHAR NOT NULL,
    statistic   DOUBLE,
    threshold   DOUBLE,
    fired       BOOLEAN NOT NULL,
    drifted     BOOLEAN NOT NULL
);
COMMENT ON TABLE drift_checks IS 'What the deferred detector says of a set of pages: one row per criterion';
COMMENT ON COLUMN drift_checks.check_id IS 'The check; its criteria share it';
COMMENT ON COLUMN drift_checks.source IS 'Whose pages';
COMMENT ON COLUMN drift_checks.checked_at IS 'When they were compared';
COMMENT ON COLUMN drift_checks.n_reference IS 'Pages of the reference';
COMMENT ON COLUMN drift_checks.n_test IS 'Pages compared with it';
COMMENT ON COLUMN drift_checks.criterion IS 'Which measure of a page';
COMMENT ON COLUMN drift_checks.statistic IS 'How far the two sets are apart in it; empty when it could not be told';
COMMENT ON COLUMN drift_checks.threshold IS 'Larger than this counts';
COMMENT ON COLUMN drift_checks.fired IS 'True when this criterion speaks for drift';
COMMENT ON COLUMN drift_checks.drifted IS 'The check as a whole: true when it found drift';

CREATE TABLE rule_hits (
    hit_id      VARCHAR NOT NULL,
    article_id  VARCHAR NOT NULL,
    version     INTEGER NOT NULL,
    source      VARCHAR NOT NULL,
    rule        VARCHAR NOT NULL,
    level       INTEGER NOT NULL,
    matched     VARCHAR NOT NULL,
    start       INTEGER NOT NULL,
    sentence    VARCHAR,
    explanation VARCHAR,
    hit_at      TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE rule_hits IS 'A keyword rule that matched a version of an article';
COMMENT ON COLUMN rule_hits.hit_id IS 'Digest of article, version, rule and place: the same hit twice is one';
COMMENT ON COLUMN rule_hits.article_id IS 'The article';
COMMENT ON COLUMN rule_hits.version IS 'Its version';
COMMENT ON COLUMN rule_hits.source IS 'Who published it';
COMMENT ON COLUMN rule_hits.rule IS 'Name of the rule';
COMMENT ON COLUMN rule_hits.level IS 'Urgency, from 1 (at once) to 5 (keep)';
COMMENT ON COLUMN rule_hits.matched IS 'The words that matched';
COMMENT ON COLUMN rule_hits.start IS 'Where they begin, in characters of title and text';
COMMENT ON COLUMN rule_hits.sentence IS 'The sentence they stand in';
COMMENT ON COLUMN rule_hits.explanation IS 'Why the rule matched, in words';
COMMENT ON COLUMN rule_hits.hit_at IS 'When it matched';

CREATE TABLE notices (
    notice_id VARCHAR NOT NULL,
    kind      VARCHAR NOT NULL,
    subject   VARCHAR NOT NULL,
    source    VARCHAR,
    level     INTEGER NOT NULL,
    channel   VARCHAR NOT NULL,
    text      VARCHAR,
    raised_at TIMESTAMPTZ NOT NULL,
    sent_at   TIMESTAMPTZ,
    closed_at TIMESTAMPTZ,
    error     VARCHAR
);
COMMENT ON TABLE notices IS 'Something people were told, or will be';
COMMENT ON COLUMN notices.notice_id IS 'Digest of what it is about and for whom: raised once';
COMMENT ON COLUMN notices.kind IS 'hit, silence, failure, drift and so on';
COMMENT ON COLUMN notices.subject IS 'What it is about, in one line';
COMMENT ON COLUMN notices.source IS 'The source it is about, where it is one';
COMMENT ON COLUMN notices.level IS 'Urgency, from 1 (at once) to 5 (keep)';
COMMENT ON COLUMN notices.channel IS 'Where it goes';
COMMENT ON COLUMN notices.text IS 'What it says';
COMMENT ON COLUMN notices.raised_at IS 'When the state began';
COMMENT ON COLUMN notices.sent_at IS 'When people were told; empty while they wait';
COMMENT ON COLUMN notices.closed_at IS 'When the state was mended';
COMMENT ON COLUMN notices.error IS 'Why the last attempt to send failed';
