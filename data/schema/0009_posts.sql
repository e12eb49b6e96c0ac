-- Posts may carry more than text, and that is worth knowing where a text is missing.

ALTER TABLE entries ADD COLUMN media VARCHAR[];
COMMENT ON COLUMN entries.media IS 'What a post carries besides text: photo, video, poll ...';
COMMENT ON COLUMN articles.extraction IS 'How the text was got: trafilatura, css, a method of [extract]; entry: the listing brought it whole; listing: title and summary stand in for a page that could not be had';
