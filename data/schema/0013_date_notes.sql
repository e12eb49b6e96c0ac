-- A declared time that is refused leaves a reason, and one that lies ahead is flagged.

ALTER TABLE entries ADD COLUMN published_note VARCHAR;
COMMENT ON COLUMN entries.published_note IS 'What is odd about the declared time: why it was refused (published_at is then empty), or how far ahead of its first sight it lies';
