-- One row per source for `newsbeat status`. @now is the moment it is asked for.
WITH moment AS (SELECT @now AS now_at),
poll_facts AS (
    SELECT
        source,
        arg_max(outcome, finished_at) AS last_outcome,
        arg_max(reason, finished_at) AS last_reason,
        max(finished_at) AS last_poll_at,
        count(*) AS n_polls,
        count(*) FILTER (possible_loss) AS n_possible_losses,
        sum(index_bytes + article_bytes)::BIGINT AS total_bytes
    FROM polls
    GROUP BY source
),
article_facts AS (
    SELECT
        source,
        count(*) AS n_articles,
        count(*) FILTER (stored_at > now_at - INTERVAL 24 HOUR) AS n_articles_24h,
        avg(publication_lag_s) FILTER (NOT is_backlog) AS mean_lag_s,
        median(publication_lag_s) FILTER (NOT is_backlog) AS median_lag_s
    FROM articles, moment
    GROUP BY source
),
entry_facts AS (SELECT source, count(*) AS n_entries FROM entries GROUP BY source),
pending_facts AS (SELECT source, count(*) AS n_pending FROM pending_articles GROUP BY source)
SELECT
    source,
    title,
    kind,
    coalesce(state, 'paused') AS state,
    coalesce(reason, '') AS reason,
    due_at,
    coalesce(consecutive_failures, 0) AS consecutive_failures,
    last_success_at,
    last_outcome,
    coalesce(last_reason, '') AS last_reason,
    last_poll_at,
    coalesce(n_polls, 0) AS n_polls,
    coalesce(n_entries, 0) AS n_entries,
    coalesce(n_articles, 0) AS n_articles,
    coalesce(n_articles_24h, 0) AS n_articles_24h,
    coalesce(n_pending, 0) AS n_pending,
    mean_lag_s,
    median_lag_s,
    coalesce(n_possible_losses, 0) AS n_possible_losses,
    coalesce(total_bytes, 0) AS total_bytes
FROM sources
LEFT JOIN schedule USING (source)
LEFT JOIN poll_facts USING (source)
LEFT JOIN article_facts USING (source)
LEFT JOIN entry_facts USING (source)
LEFT JOIN pending_facts USING (source)
ORDER BY source
