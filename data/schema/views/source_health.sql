-- "Now" is the end of the last poll of all: the product's clock need not be the wall's.
CREATE OR REPLACE VIEW source_health AS
WITH moment AS (SELECT max(finished_at) AS now_at FROM polls),
last_polls AS (
    SELECT
        source,
        count(*) AS n_polls,
        arg_max(outcome, finished_at) AS last_outcome,
        arg_max(reason, finished_at) AS last_reason,
        max(finished_at) AS last_poll_at,
        max(finished_at) FILTER (entries_new > 0) AS last_new_at,
        count(*) FILTER (finished_at > now_at - INTERVAL 24 HOUR) AS n_polls_24h,
        count(*) FILTER (finished_at > now_at - INTERVAL 24 HOUR
                         AND outcome IN ('failed', 'refused')) AS n_failed_24h,
        count(*) FILTER (possible_loss) AS n_possible_losses
    FROM polls, moment
    GROUP BY source
)
SELECT
    sources.source,
    sources.title,
    schedule.state,
    schedule.reason,
    schedule.due_at,
    schedule.consecutive_failures,
    schedule.last_success_at,
    last_polls.last_outcome,
    last_polls.last_reason,
    last_polls.last_poll_at,
    last_polls.last_new_at,
    date_diff('second', last_polls.last_new_at, moment.now_at) / 3600.0 AS silent_h,
    coalesce(last_polls.n_polls, 0) AS n_polls,
    coalesce(last_polls.n_polls_24h, 0) AS n_polls_24h,
    coalesce(last_polls.n_failed_24h, 0) AS n_failed_24h,
    coalesce(last_polls.n_possible_losses, 0) AS n_possible_losses
FROM sources
CROSS JOIN moment
LEFT JOIN schedule USING (source)
LEFT JOIN last_polls USING (source);
COMMENT ON VIEW source_health IS 'How each source fares: its state, its last poll, failures and silence';
COMMENT ON COLUMN source_health.source IS 'Short name of the source';
COMMENT ON COLUMN source_health.title IS 'Its name for people';
COMMENT ON COLUMN source_health.state IS 'active, paused, failing, drifted or gone';
COMMENT ON COLUMN source_health.reason IS 'Why the next poll is when it is, or why there is none';
COMMENT ON COLUMN source_health.due_at IS 'When the next poll is due';
COMMENT ON COLUMN source_health.consecutive_failures IS 'Failed polls in a row';
COMMENT ON COLUMN source_health.last_success_at IS 'End of the last poll that did not fail';
COMMENT ON COLUMN source_health.last_outcome IS 'Outcome of the last poll; empty before the first';
COMMENT ON COLUMN source_health.last_reason IS 'What went wrong in it, empty when nothing did';
COMMENT ON COLUMN source_health.last_poll_at IS 'When it was over';
COMMENT ON COLUMN source_health.last_new_at IS 'End of the last poll that found something new';
COMMENT ON COLUMN source_health.silent_h IS 'Hours from then to the last poll of any source';
COMMENT ON COLUMN source_health.n_polls IS 'Polls since the beginning';
COMMENT ON COLUMN source_health.n_polls_24h IS 'Polls in the 24 hours before the last poll of any source';
COMMENT ON COLUMN source_health.n_failed_24h IS 'How many of those failed or were refused';
COMMENT ON COLUMN source_health.n_possible_losses IS 'Polls after which entries may have been missed, since the beginning';
