-- What several articles tell in nearly the same words: who ran it first, who followed, how fast.
CREATE OR REPLACE VIEW stories AS
WITH members AS (
    SELECT DISTINCT ON (article_id) story_id, article_id
    FROM article_likenesses
    ORDER BY article_id, version DESC
),
told AS (
    SELECT
        members.story_id,
        articles.article_id,
        articles.source,
        articles.title,
        coalesce(articles.published_at, articles.stored_at) AS told_at
    FROM members JOIN articles USING (article_id)
),
outlets AS (
    SELECT story_id, source, min(told_at) AS told_at
    FROM told
    GROUP BY story_id, source
),
ordered AS (
    SELECT story_id, list(source ORDER BY told_at, source) AS outlets
    FROM outlets
    GROUP BY story_id
)
SELECT
    told.story_id,
    min(told.told_at) AS begun_at,
    max(told.told_at) AS last_at,
    arg_min(told.title, told.told_at) AS title,
    ordered.outlets[1] AS first_outlet,
    ordered.outlets,
    len(ordered.outlets) AS n_outlets,
    count(*) AS n_articles,
    date_diff('second', min(told.told_at), max(told.told_at)) AS spread_s
FROM told JOIN ordered USING (story_id)
GROUP BY told.story_id, ordered.outlets;
COMMENT ON VIEW stories IS 'Articles that say nearly the same, reprints above all, gathered: none is dropped for it';
COMMENT ON COLUMN stories.story_id IS 'The article that was stored first of them';
COMMENT ON COLUMN stories.begun_at IS 'When the first of them was published, or stored where no time is known';
COMMENT ON COLUMN stories.last_at IS 'When the last of them was';
COMMENT ON COLUMN stories.title IS 'Headline of the first';
COMMENT ON COLUMN stories.first_outlet IS 'Source that published it first';
COMMENT ON COLUMN stories.outlets IS 'All sources that ran it, in the order in which they did';
COMMENT ON COLUMN stories.n_outlets IS 'How many these are';
COMMENT ON COLUMN stories.n_articles IS 'How many articles tell it';
COMMENT ON COLUMN stories.spread_s IS 'Seconds from the first to the last';
