-- Two weeks of a small invented press, up to @now, for tests of the status page and the report.
-- One source of each fate: harbour is well, lantern fails, moor is overdue, tide has drifted,
-- quay may have lost something, and spit's headlines are meant to do harm.
INSERT INTO sources (source, title, url, kind, language, timezone, country, tags, weight, reach, policy,
    interval_s, is_listed, read_at)
SELECT source, title, 'https://' || source || '.example/feed', 'feed', language, 'UTC', country,
       tags, 1.0, 'wide', 'auto', 600.0, true, @now - INTERVAL 20 DAY
FROM (VALUES
    ('harbour', 'The Harbour Courier', 'en', 'GB', ['local', 'port']),
    ('lantern', 'Lantern Daily', 'en', 'GB', ['world']),
    ('moor', 'Moorland-Bote', 'de', 'DE', ['local']),
    ('tide', 'Вести прилива', 'ru', 'RU', ['world', 'port']),
    ('quay', '江湾日报', 'zh', 'CN', ['port']),
    ('spit', '<script>alert("title")</script>', 'en', 'US', ['world'])
) AS press(source, title, language, country, tags);

INSERT INTO schedule (source, due_at, reason, state, cycle, consecutive_failures, etag, last_modified,
    validators_url, host_not_before, lease_until, body_sha256, last_success_at)
SELECT source,
       CASE source WHEN 'moor' THEN @now - INTERVAL 47 MINUTE ELSE @now + INTERVAL 6 MINUTE END,
       'next in 6 min: 0.8 entries expected, a busy hour',
       CASE source WHEN 'lantern' THEN 'failing' WHEN 'tide' THEN 'drifted' ELSE 'active' END,
       2017, CASE source WHEN 'lantern' THEN 9 ELSE 0 END, NULL, NULL, NULL, NULL, NULL, NULL,
       CASE source WHEN 'lantern' THEN @now - INTERVAL 5 HOUR ELSE @now - INTERVAL 4 MINUTE END
FROM sources;

-- A poll every ten minutes.
INSERT INTO polls (poll_id, source, cycle, due_at, started_at, finished_at, outcome, http_status, reason,
    entries_listed, entries_new, articles_stored, mean_lag_s, overlap, possible_loss, index_bytes,
    article_bytes, cpu_s, policy, next_due_at, next_reason, decision)
SELECT source || '#' || n, source, n, begun_at, begun_at, begun_at + INTERVAL 2 SECOND,
       CASE WHEN source = 'lantern' AND n > 1986 THEN 'failed'
            WHEN hash(source, n) % 3 = 0 THEN 'new' ELSE 'not_modified' END,
       CASE WHEN source = 'lantern' AND n > 1986 THEN 503 ELSE 200 END,
       CASE WHEN source = 'lantern' AND n > 1986 THEN 'HTTP 503' ELSE '' END,
       30, CASE WHEN hash(source, n) % 3 = 0 THEN 1 ELSE 0 END,
       CASE WHEN hash(source, n) % 3 = 0 THEN 1 ELSE 0 END,
       120.0, true, source = 'quay' AND n IN (1700, 2000), 4000, 20000, 0.05, 'price',
       begun_at + INTERVAL 10 MINUTE, 'next in 10 min: 0.8 entries expected, a busy hour',
       '{"basis": {"price": 120.0}, "moment": {"cycle": ' || n || '}}'
FROM (
    SELECT source, n, @now - to_minutes((2016 - n) * 10 + 4) AS begun_at
    FROM sources, range(1, 2017) AS cycles(n)
);

-- Something new in every third poll; more by day than by night.
INSERT INTO entries (entry_id, source, url, guid, title, summary, authors, published_at, published_precision,
    published_basis, updated_at, first_seen_at, poll_id, is_backlog, fingerprint)
SELECT source || '-' || cycle, source, 'https://' || source || '.example/' || cycle, NULL,
       CASE
           WHEN source = 'spit' AND cycle % 5 = 0
               THEN '=HYPERLINK("https://bad.example","x")<img src=x onerror=alert(1)>'
           WHEN source = 'spit' THEN '</title></svg><script>alert(' || cycle || ')</script> 🜁'
           WHEN cycle > 1990 AND source IN ('harbour', 'moor', 'tide')
               THEN 'Storm flood closes the old harbour bridge until Friday'
           WHEN source = 'quay' THEN '港口大桥因风暴关闭 ' || cycle
           ELSE 'The council of ' || source || ' talks of item ' || cycle % 40
       END,
       'In short.', [], started_at - to_seconds((60 + hash(poll_id) % 400)::BIGINT), 'instant',
       'pubDate', NULL, finished_at, poll_id, false, 'f'
FROM polls
WHERE outcome = 'new';

INSERT INTO articles (article_id, entry_id, source, url, canonical_url, title, text, authors, language,
    published_at, published_precision, published_basis, stored_at, publication_lag_s, is_backlog,
    version, changed_at, poll_id, page_id, extraction, kind, warnings, text_sha256, quarantined)
SELECT 'a-' || entry_id, entry_id, source, CASE source WHEN 'spit' THEN 'javascript:alert(1)' ELSE url END,
       NULL, title, title || '. And so on.', [], NULL, published_at, 'instant', 'listing',
       first_seen_at, epoch(first_seen_at) - epoch(published_at), false, 1, first_seen_at, poll_id,
       'p-' || entry_id, 'trafilatura', 'article', [], 't', source = 'tide' AND first_seen_at > @now - INTERVAL 1 DAY
FROM entries
WHERE entry_id <> 'harbour-2014';

INSERT INTO pages (page_id, source, url, fetched_at, status, bytes, sha256, warc_file, warc_offset, poll_id, features)
SELECT page_id, source, url, stored_at, 200, 20000, 's', 'x.warc.gz', 0, poll_id, NULL FROM articles;

INSERT INTO forecasts (source, hour_at, made_at, kind, expected_entries, low, high)
SELECT source, date_trunc('hour', @now) + to_hours(n), @now - INTERVAL 13 DAY, 'weekly',
       2.0 + sin(n / 4.0), 0.0, 6.0
FROM sources, range(-300, 24) AS hours(n);

INSERT INTO budget (reckoned_at, currency, planned_per_day, spent_per_day, price, expected_per_day,
    expected_polls_per_day, expected_lag_s, overload)
SELECT @now - to_hours(n), 'polls', 864.0, 820.0 + 40 * sin(n / 5.0), 120.0 + n, 860.0, 860.0, 240.0,
       1.0
FROM range(0, 100) AS hours(n);

INSERT INTO intensity_models (source, fitted_at, kind, parameters, score, policy, state, note)
SELECT source, @now - INTERVAL 6 HOUR, 'weekly', '{}', 0.42, 'price', NULL, 'the weekly profile explained most'
FROM sources;

INSERT INTO page_verdicts (page_id, source, judged_at, score, suspicious, reason)
SELECT page_id, source, fetched_at, 0.4, source = 'tide' AND fetched_at > @now - INTERVAL 2 DAY,
       CASE WHEN source = 'tide' THEN 'four times the links of any page before' ELSE '' END
FROM pages;

INSERT INTO drift_checks (check_id, source, checked_at, n_reference, n_test, criterion, statistic, threshold,
    fired, drifted)
SELECT 'check-' || source, source, @now - INTERVAL 3 HOUR, 100, 40, criterion,
       CASE source WHEN 'tide' THEN 2.1 ELSE 0.1 END, 0.7, source = 'tide', source = 'tide'
FROM sources, (VALUES ('links'), ('paragraph length')) AS criteria(criterion)
WHERE source IN ('tide', 'harbour');

INSERT INTO rule_hits (hit_id, article_id, version, source, rule, level, matched, start, sentence, explanation,
    hit_at)
SELECT 'h-' || article_id, article_id, 1, source, CASE WHEN level = 1 THEN 'floods' ELSE 'councils' END,
       level, CASE WHEN level = 1 THEN 'Storm flood' ELSE 'council' END, 0, title,
       'word form of ' || CASE WHEN level = 1 THEN 'flood' ELSE 'council' END, stored_at
FROM (
    SELECT *, CASE WHEN title LIKE 'Storm%' AND source = 'harbour' THEN 1
                   ELSE 2 + hash(article_id) % 4 END AS level
    FROM articles
    WHERE title LIKE 'Storm%' OR hash(article_id) % 4 = 0
);

INSERT INTO drift_states (source, updated_at, standing, learn_from, clean_before, since_page, since_at,
    channel, reason, n_pages, n_unchecked)
SELECT 'tide', @now, 'text', '', '', 'p-tide-1900', @now - INTERVAL 3 HOUR, 'links',
       'the text consists of links, since main > ul took the place of div.story', 400, 3;
