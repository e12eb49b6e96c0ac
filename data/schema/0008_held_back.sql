-- Articles that were held back when they came: rules are matched once they are released.

CREATE TABLE untriaged (
    article_id VARCHAR NOT NULL,
    held_at    TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE untriaged IS 'Articles held back by a check: rules are matched once they are released';
COMMENT ON COLUMN untriaged.article_id IS 'The article';
COMMENT ON COLUMN untriaged.held_at IS 'When it was stored';
COMMENT ON COLUMN rule_hits.muted IS 'Why nobody is told: backlog; empty otherwise';
