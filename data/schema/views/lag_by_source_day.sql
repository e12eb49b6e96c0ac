CREATE OR REPLACE VIEW lag_by_source_day AS
SELECT
    source,
    CAST(stored_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(*) AS n_articles,
    avg(publication_lag_s) AS mean_lag_s,
    median(publication_lag_s) AS median_lag_s,
    quantile_cont(publication_lag_s, 0.95) AS p95_lag_s,
    max(publication_lag_s) AS max_lag_s
FROM articles
WHERE publication_lag_s IS NOT NULL AND NOT is_backlog AND NOT quarantined
GROUP BY ALL;
COMMENT ON VIEW lag_by_source_day IS 'How long articles were out before we had them, per source and day; without what was listed before the source was watched, and what is held back';
COMMENT ON COLUMN lag_by_source_day.source IS 'Who published them';
COMMENT ON COLUMN lag_by_source_day.day IS 'Day they were stored, UTC';
COMMENT ON COLUMN lag_by_source_day.n_articles IS 'Articles whose lag is known';
COMMENT ON COLUMN lag_by_source_day.mean_lag_s IS 'Mean publication lag, in seconds';
COMMENT ON COLUMN lag_by_source_day.median_lag_s IS 'Median publication lag, in seconds';
COMMENT ON COLUMN lag_by_source_day.p95_lag_s IS 'Lag that 95 of 100 articles stay under, in seconds';
COMMENT ON COLUMN lag_by_source_day.max_lag_s IS 'Longest publication lag, in seconds';
