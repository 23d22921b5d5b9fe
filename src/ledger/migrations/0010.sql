-- The vault's ticket for what the message asked for; NULL for a job from before there were tickets, until
-- the first start.
ALTER TABLE job ADD COLUMN ticket BLOB;
