-- Keyword hits that say more, stories that reprints belong to, notices that go to channels,
-- and the outbox: what is to be sent, word for word, until it has been.

ALTER TABLE rule_hits ADD COLUMN rule_level INTEGER;
ALTER TABLE rule_hits ADD COLUMN rule_group VARCHAR;
ALTER TABLE rule_hits ADD COLUMN term VARCHAR;
ALTER TABLE rule_hits ADD COLUMN mode VARCHAR;
ALTER TABLE rule_hits ADD COLUMN stop INTEGER;
ALTER TABLE rule_hits ADD COLUMN n_places INTEGER;
ALTER TABLE rule_hits ADD COLUMN story_id VARCHAR;
ALTER TABLE rule_hits ADD COLUMN muted VARCHAR;
COMMENT ON COLUMN rule_hits.hit_id IS 'Digest of article, version and rule: the same hit twice is one';
COMMENT ON COLUMN rule_hits.level IS 'Urgency, from 1 (at once) to 5 (keep), as raised';
COMMENT ON COLUMN rule_hits.rule_level IS 'Urgency as the rule has it';
COMMENT ON COLUMN rule_hits.rule_group IS 'Group of the rule, which channels are chosen by';
COMMENT ON COLUMN rule_hits.term IS 'What the rule has for the matched words';
COMMENT ON COLUMN rule_hits.mode IS 'How they were compared: word, lemma, phrase, substring or regex';
COMMENT ON COLUMN rule_hits.stop IS 'Where they end, in characters of title and text';
COMMENT ON COLUMN rule_hits.n_places IS 'Places of the article where the rule found something';
COMMENT ON COLUMN rule_hits.story_id IS 'The story it belongs to; empty where nobody is to be told';
COMMENT ON COLUMN rule_hits.muted IS 'Why nobody is told: backlog or quarantined; empty otherwise';

CREATE TABLE stories (
    story_id  VARCHAR NOT NULL,
    begun_at  TIMESTAMPTZ NOT NULL,
    last_at   TIMESTAMPTZ NOT NULL,
    title     VARCHAR,
    signature BIGINT[]
);
COMMENT ON TABLE stories IS 'Articles with hits that tell the same: people are told once';
COMMENT ON COLUMN stories.story_id IS 'The story';
COMMENT ON COLUMN stories.begun_at IS 'When its first article was stored';
COMMENT ON COLUMN stories.last_at IS 'When its last article was stored';
COMMENT ON COLUMN stories.title IS 'Headline of its first article';
COMMENT ON COLUMN stories.signature IS 'Sketch of its first text, to know reprints by';

ALTER TABLE notices ADD COLUMN story_id VARCHAR;
ALTER TABLE notices ADD COLUMN url VARCHAR;
ALTER TABLE notices ADD COLUMN rules VARCHAR[];
ALTER TABLE notices ADD COLUMN outlets VARCHAR[];
ALTER TABLE notices ADD COLUMN due_at TIMESTAMPTZ;
ALTER TABLE notices ADD COLUMN told_at TIMESTAMPTZ;
ALTER TABLE notices ADD COLUMN n_told INTEGER;
ALTER TABLE notices ADD COLUMN acknowledged_at TIMESTAMPTZ;
ALTER TABLE notices ADD COLUMN acknowledged_by VARCHAR;
COMMENT ON COLUMN notices.sent_at IS 'When people were first told; empty while they wait';
COMMENT ON COLUMN notices.story_id IS 'The story it tells; its notices on other channels share it';
COMMENT ON COLUMN notices.url IS 'Address of the article that raised it';
COMMENT ON COLUMN notices.rules IS 'Rules that hit the story';
COMMENT ON COLUMN notices.outlets IS 'Sources that ran the story, the first one first';
COMMENT ON COLUMN notices.due_at IS 'When it is to be told next; empty while nothing is to be told';
COMMENT ON COLUMN notices.told_at IS 'When people were last told';
COMMENT ON COLUMN notices.n_told IS 'How often they were, since it became as urgent as it is';
COMMENT ON COLUMN notices.acknowledged_at IS 'When somebody answered: it is not repeated from then on';
COMMENT ON COLUMN notices.acknowledged_by IS 'Who answered';

CREATE TABLE outbox (
    message_id  VARCHAR NOT NULL,
    channel     VARCHAR NOT NULL,
    kind        VARCHAR NOT NULL,
    level       INTEGER NOT NULL,
    notice_ids  VARCHAR[] NOT NULL,
    title       VARCHAR NOT NULL,
    parts       VARCHAR[] NOT NULL,
    n_sent      INTEGER NOT NULL,
    made_at     TIMESTAMPTZ NOT NULL,
    next_try_at TIMESTAMPTZ,
    attempts    INTEGER NOT NULL,
    sent_at     TIMESTAMPTZ,
    error       VARCHAR
);
COMMENT ON TABLE outbox IS 'Messages to channels, word for word, and how far each has gone';
COMMENT ON COLUMN outbox.message_id IS 'Stands in the message too, so that whoever gets one twice can tell';
COMMENT ON COLUMN outbox.channel IS 'Where it goes';
COMMENT ON COLUMN outbox.kind IS 'alert, reminder or digest';
COMMENT ON COLUMN outbox.level IS 'Most urgent level in it';
COMMENT ON COLUMN outbox.notice_ids IS 'The notices it tells';
COMMENT ON COLUMN outbox.title IS 'Its title';
COMMENT ON COLUMN outbox.parts IS 'Its text, in as many parts as the channel needs';
COMMENT ON COLUMN outbox.n_sent IS 'Parts that have gone out';
COMMENT ON COLUMN outbox.made_at IS 'When it was written';
COMMENT ON COLUMN outbox.next_try_at IS 'Not before this time; empty once it is sent or given up';
COMMENT ON COLUMN outbox.attempts IS 'Failed attempts so far';
COMMENT ON COLUMN outbox.sent_at IS 'When its last part went out';
COMMENT ON COLUMN outbox.error IS 'Why the last attempt failed';
