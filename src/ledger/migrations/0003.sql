-- When askers of whom jobs were deleted had started them: what the limit of a day counts, and nothing of what was asked
-- for. Gone after a day.
CREATE TABLE started (
    asker BLOB NOT NULL CHECK (length(asker) = 32),
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX started_by_asker ON started (asker, at);

-- When an asker said stop; 0 where that was not noted.
ALTER TABLE silent ADD COLUMN since INTEGER NOT NULL DEFAULT 0;

-- Jobs past their time are looked up every half minute.
CREATE INDEX job_by_expiry ON job (expires_at) WHERE state = 'accepted';
