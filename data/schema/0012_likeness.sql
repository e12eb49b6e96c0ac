-- Articles that say nearly the same, of all sources, in place of stories of hits alone:
-- one mechanism finds reprints for analysts and for notices.

DROP TABLE stories;

CREATE TABLE article_likenesses (
    article_id VARCHAR NOT NULL,
    version    INTEGER NOT NULL,
    source     VARCHAR NOT NULL,
    seen_at    TIMESTAMPTZ NOT NULL,
    story_id   VARCHAR NOT NULL,
    resembles  VARCHAR,
    similarity DOUBLE,
    signature  BLOB
);
COMMENT ON TABLE article_likenesses IS 'What each version of an article was found to be like when it was stored';
COMMENT ON COLUMN article_likenesses.article_id IS 'The article';
COMMENT ON COLUMN article_likenesses.version IS 'Number of its version';
COMMENT ON COLUMN article_likenesses.source IS 'Who published it';
COMMENT ON COLUMN article_likenesses.seen_at IS 'When the version was stored';
COMMENT ON COLUMN article_likenesses.story_id IS 'The first article of the story it tells; its own where it is like none before';
COMMENT ON COLUMN article_likenesses.resembles IS 'The earlier article it is likest; empty where it is like none';
COMMENT ON COLUMN article_likenesses.similarity IS 'Share of common runs of two words, 0 to 1; below 0.3 the headline is the same';
COMMENT ON COLUMN article_likenesses.signature IS 'What newsbeat compares: 128 marks; empty where the text says too little';
COMMENT ON COLUMN rule_hits.story_id IS 'The story it belongs to, see the view stories; empty where nobody is to be told';
COMMENT ON COLUMN notices.story_id IS 'The story or incident it tells; its notices on other channels share it';
