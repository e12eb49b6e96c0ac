-- How the one price followed the budget: what was planned, what it was expected to lead to, what was spent.
CREATE TABLE budget (
    reckoned_at       TIMESTAMPTZ NOT NULL,
    currency          VARCHAR NOT NULL,
    planned_per_day   DOUBLE,
    spent_per_day     DOUBLE,
    price             DOUBLE NOT NULL,
    expected_per_day  DOUBLE NOT NULL,
    expected_polls_per_day DOUBLE NOT NULL,
    expected_lag_s    DOUBLE
);
COMMENT ON TABLE budget IS 'The price of a poll, each time it was brought in line with the budget';
COMMENT ON COLUMN budget.reckoned_at IS 'When';
COMMENT ON COLUMN budget.currency IS 'What the budget counts: polls or MB';
COMMENT ON COLUMN budget.planned_per_day IS 'What a day may cost; NULL where only a lag is promised';
COMMENT ON COLUMN budget.spent_per_day IS 'What was spent of late, scaled to a day; NULL while too short a time has passed';
COMMENT ON COLUMN budget.price IS 'Entry-seconds of waiting that a poll must save, per unit of its cost';
COMMENT ON COLUMN budget.expected_per_day IS 'What a day is expected to cost at that price';
COMMENT ON COLUMN budget.expected_polls_per_day IS 'Polls of a day at that price';
COMMENT ON COLUMN budget.expected_lag_s IS 'Expected mean wait of an entry until the poll that finds it, in seconds';
