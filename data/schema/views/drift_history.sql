CREATE OR REPLACE VIEW drift_history AS
SELECT
    check_id,
    source,
    checked_at,
    any_value(n_reference) AS n_reference,
    any_value(n_test) AS n_test,
    count(*) AS n_criteria,
    count(*) FILTER (fired) AS n_fired,
    coalesce(string_agg(criterion, ', ' ORDER BY criterion) FILTER (fired), '') AS fired_criteria,
    bool_or(drifted) AS drifted,
    any_value(outcome) AS outcome,
    any_value(document) AS document,
    any_value(cpu_s) AS cpu_s
FROM drift_checks
GROUP BY check_id, source, checked_at;
COMMENT ON VIEW drift_history IS 'Checks for a change of layout, one row each';
COMMENT ON COLUMN drift_history.check_id IS 'The check';
COMMENT ON COLUMN drift_history.source IS 'Whose pages';
COMMENT ON COLUMN drift_history.checked_at IS 'When they were compared';
COMMENT ON COLUMN drift_history.n_reference IS 'Pages of the reference';
COMMENT ON COLUMN drift_history.n_test IS 'Pages compared with it';
COMMENT ON COLUMN drift_history.n_criteria IS 'Criteria that were judged';
COMMENT ON COLUMN drift_history.n_fired IS 'Criteria that spoke for drift';
COMMENT ON COLUMN drift_history.fired_criteria IS 'Their names';
COMMENT ON COLUMN drift_history.drifted IS 'True when the check found drift';
COMMENT ON COLUMN drift_history.outcome IS 'passed, drifted, or not evaluated, which is a failure';
COMMENT ON COLUMN drift_history.document IS 'File with all findings, relative to the warehouse folder; the last one of each source is kept';
COMMENT ON COLUMN drift_history.cpu_s IS 'Processor seconds it took';
