-- The table that says which of the files beside this one a database has been through.
CREATE TABLE schema_migrations (
    version    INTEGER NOT NULL,
    name       VARCHAR NOT NULL,
    sha256     VARCHAR NOT NULL,
    applied_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE schema_migrations IS 'Changes of the schema this database has been through';
COMMENT ON COLUMN schema_migrations.version IS 'Number of the change; 0 stands for the views as a whole';
COMMENT ON COLUMN schema_migrations.name IS 'File it came from';
COMMENT ON COLUMN schema_migrations.sha256 IS 'Digest of that file';
COMMENT ON COLUMN schema_migrations.applied_at IS 'Wall time it was applied';
