-- Of several forecasts for one hour the last one made before the hour began counts.
CREATE OR REPLACE VIEW forecast_vs_actual AS
WITH last_forecasts AS (
    SELECT source, hour_at, kind, expected_entries, low, high
    FROM forecasts
    WHERE made_at <= hour_at
    QUALIFY row_number() OVER (PARTITION BY source, hour_at, kind ORDER BY made_at DESC) = 1
),
actual AS (
    SELECT
        source,
        date_trunc('hour', coalesce(published_at, first_seen_at)) AS hour_at,
        count(*) AS n
    FROM entries
    GROUP BY ALL
),
seen AS (SELECT source, min(started_at) AS from_at, max(finished_at) AS until_at FROM polls GROUP BY source)
SELECT
    last_forecasts.source,
    last_forecasts.hour_at,
    last_forecasts.kind,
    last_forecasts.expected_entries,
    last_forecasts.low,
    last_forecasts.high,
    coalesce(actual.n, 0) AS actual_entries,
    coalesce(actual.n, 0) - last_forecasts.expected_entries AS error,
    coalesce(actual.n, 0) BETWEEN last_forecasts.low AND last_forecasts.high AS is_within
FROM last_forecasts
JOIN seen
    ON seen.source = last_forecasts.source
    AND last_forecasts.hour_at + INTERVAL 1 HOUR <= seen.until_at
    AND last_forecasts.hour_at >= seen.from_at
LEFT JOIN actual
    ON actual.source = last_forecasts.source AND actual.hour_at = last_forecasts.hour_at;
COMMENT ON VIEW forecast_vs_actual IS 'Forecasts of hours that are over, beside what was published in them';
COMMENT ON COLUMN forecast_vs_actual.source IS 'Of whom';
COMMENT ON COLUMN forecast_vs_actual.hour_at IS 'Start of the hour';
COMMENT ON COLUMN forecast_vs_actual.kind IS 'Name of the estimator';
COMMENT ON COLUMN forecast_vs_actual.expected_entries IS 'Expected number of entries';
COMMENT ON COLUMN forecast_vs_actual.low IS 'Lower end of the likely range';
COMMENT ON COLUMN forecast_vs_actual.high IS 'Upper end of the likely range';
COMMENT ON COLUMN forecast_vs_actual.actual_entries IS 'Entries published in that hour (by first sight where undated)';
COMMENT ON COLUMN forecast_vs_actual.error IS 'actual_entries - expected_entries';
COMMENT ON COLUMN forecast_vs_actual.is_within IS 'True when the actual number lies in the likely range';
