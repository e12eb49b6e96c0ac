CREATE OR REPLACE VIEW traffic_by_source_day AS
SELECT
    source,
    CAST(started_at AT TIME ZONE 'UTC' AS DATE) AS day,
    count(*) AS n_polls,
    count(*) FILTER (outcome IN ('empty', 'not_modified')) AS n_empty,
    count(*) FILTER (outcome IN ('failed', 'refused')) AS n_failed,
    sum(entries_new)::BIGINT AS n_entries,
    sum(articles_stored)::BIGINT AS n_articles,
    sum(index_bytes)::BIGINT AS index_bytes,
    sum(article_bytes)::BIGINT AS article_bytes,
    sum(index_bytes + article_bytes)::BIGINT AS total_bytes,
    sum(cpu_s) AS cpu_s
FROM polls
GROUP BY ALL;
COMMENT ON VIEW traffic_by_source_day IS 'What watching cost and brought, per source and day';
COMMENT ON COLUMN traffic_by_source_day.source IS 'Who was polled';
COMMENT ON COLUMN traffic_by_source_day.day IS 'Day the polls began, UTC';
COMMENT ON COLUMN traffic_by_source_day.n_polls IS 'Polls';
COMMENT ON COLUMN traffic_by_source_day.n_empty IS 'Polls that found nothing new';
COMMENT ON COLUMN traffic_by_source_day.n_failed IS 'Polls that got no answer, or were refused';
COMMENT ON COLUMN traffic_by_source_day.n_entries IS 'New entries';
COMMENT ON COLUMN traffic_by_source_day.n_articles IS 'Articles and new versions stored';
COMMENT ON COLUMN traffic_by_source_day.index_bytes IS 'Bytes received for listings';
COMMENT ON COLUMN traffic_by_source_day.article_bytes IS 'Bytes received for article pages';
COMMENT ON COLUMN traffic_by_source_day.total_bytes IS 'Both together';
COMMENT ON COLUMN traffic_by_source_day.cpu_s IS 'Processor seconds';
