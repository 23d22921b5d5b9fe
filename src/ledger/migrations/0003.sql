-- Start times of deleted jobs, for the limit per day. Nothing of the request is kept. Deleted after
-- a day.
CREATE TABLE started (
    asker BLOB NOT NULL CHECK (length(asker) = 32),
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX started_by_asker ON started (asker, at);

-- When an asker said stop; 0 if unknown.
ALTER TABLE silent ADD COLUMN since INTEGER NOT NULL DEFAULT 0;

-- For the search for expired jobs, every half minute.
CREATE INDEX job_by_expiry ON job (expires_at) WHERE state = 'accepted';
