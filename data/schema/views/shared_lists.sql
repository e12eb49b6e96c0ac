CREATE OR REPLACE VIEW shared_lists AS
WITH lists AS (
    -- The list is the first page that a poll keeps.
    SELECT source, poll_id, min_by(url, page_id) AS url
    FROM pages
    WHERE fetched_at >= (SELECT max(fetched_at) FROM pages) - INTERVAL 7 DAY
    GROUP BY source, poll_id
),
latest AS (
    SELECT lists.source, max_by(lists.url, polls.started_at) AS url
    FROM lists JOIN polls USING (poll_id)
    WHERE polls.outcome IN ('new', 'empty')
    GROUP BY lists.source
)
SELECT url, list_sort(list(source)) AS sources
FROM latest
WHERE source IN (SELECT source FROM sources WHERE is_listed)
GROUP BY url
HAVING count(*) > 1;
COMMENT ON VIEW shared_lists IS 'A list that several sources turned out to read, after redirects: they are one, asked and counted twice';
COMMENT ON COLUMN shared_lists.url IS 'Address that answered all of them last, within a week';
COMMENT ON COLUMN shared_lists.sources IS 'The sources';
