CREATE OR REPLACE VIEW hits_by_level_day AS
SELECT
    CAST(hit_at AT TIME ZONE 'UTC' AS DATE) AS day,
    level,
    count(*) AS n_hits,
    count(DISTINCT article_id) AS n_articles,
    count(DISTINCT source) AS n_sources,
    count(DISTINCT rule) AS n_rules
FROM rule_hits
WHERE article_id NOT IN (SELECT article_id FROM articles WHERE quarantined)
GROUP BY ALL;
COMMENT ON VIEW hits_by_level_day IS 'Keyword hits per day and level of urgency, without those in articles that are held back';
COMMENT ON COLUMN hits_by_level_day.day IS 'Day of the hits, UTC';
COMMENT ON COLUMN hits_by_level_day.level IS 'Urgency, from 1 (at once) to 5 (keep)';
COMMENT ON COLUMN hits_by_level_day.n_hits IS 'Hits';
COMMENT ON COLUMN hits_by_level_day.n_articles IS 'Articles they were in';
COMMENT ON COLUMN hits_by_level_day.n_sources IS 'Sources of those articles';
COMMENT ON COLUMN hits_by_level_day.n_rules IS 'Rules that matched';
