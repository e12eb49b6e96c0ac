-- A worker may die between finding a change and saying so: the next one says it.

ALTER TABLE drift_states ADD COLUMN is_untold BOOLEAN;
UPDATE drift_states SET is_untold = false;
COMMENT ON COLUMN drift_states.is_untold IS 'Whether a change was found for which no flow run has failed yet';
