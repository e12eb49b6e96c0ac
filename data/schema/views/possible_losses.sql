CREATE OR REPLACE VIEW possible_losses AS
WITH spaced AS (
    SELECT *, lag(finished_at) OVER (PARTITION BY source ORDER BY started_at) AS seen_before_at
    FROM polls
    WHERE outcome NOT IN ('failed', 'refused')
)
SELECT
    poll_id,
    source,
    started_at,
    seen_before_at,
    date_diff('second', seen_before_at, started_at) AS gap_s,
    entries_listed,
    entries_new
FROM spaced
WHERE possible_loss;
COMMENT ON VIEW possible_losses IS 'Polls that found no known entry: some entries may have come and gone since the poll before';
COMMENT ON COLUMN possible_losses.poll_id IS 'The poll';
COMMENT ON COLUMN possible_losses.source IS 'Whose listing';
COMMENT ON COLUMN possible_losses.started_at IS 'When the poll began';
COMMENT ON COLUMN possible_losses.seen_before_at IS 'End of the last successful poll before it';
COMMENT ON COLUMN possible_losses.gap_s IS 'Seconds in between';
COMMENT ON COLUMN possible_losses.entries_listed IS 'Entries the listing holds';
COMMENT ON COLUMN possible_losses.entries_new IS 'New ones among them';
