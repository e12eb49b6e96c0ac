-- What the nightly refit learns: the model a source's policy starts from, and how it chose.
ALTER TABLE intensity_models ADD COLUMN policy VARCHAR;
ALTER TABLE intensity_models ADD COLUMN state BLOB;
ALTER TABLE intensity_models ADD COLUMN note VARCHAR;
COMMENT ON COLUMN intensity_models.policy IS 'Polling policy that did best with it: price or plan';
COMMENT ON COLUMN intensity_models.state IS 'Everything learned, as the worker reads it; other programs read parameters';
COMMENT ON COLUMN intensity_models.note IS 'Why this estimator and policy, in words';
COMMENT ON TABLE intensity_models IS 'What was learned of how many entries a source publishes when: one row per source, of the last refit';
