-- How much dearer polls are while more of them are due than can be made in time.
ALTER TABLE budget ADD COLUMN overload DOUBLE;
UPDATE budget SET overload = 1.0;
COMMENT ON COLUMN budget.overload IS 'What the price was multiplied by as polls began late: 1 while they are in time';
