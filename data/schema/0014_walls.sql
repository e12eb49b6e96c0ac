COMMENT ON COLUMN articles.kind IS 'article; wall, list or empty where its page was none and the listing stands in';
COMMENT ON COLUMN page_verdicts.gate IS 'The hard gate that stopped the page before it was compared: status, type, wall or empty; NULL where none did';
