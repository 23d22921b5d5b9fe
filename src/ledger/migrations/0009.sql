-- A job without a target: its text, `best words 10m`; NULL for others.
ALTER TABLE job ADD COLUMN best TEXT;

-- The rarest key so far of an accepted job without a target, sealed; a rarer one replaces it. It goes
-- into the outbox when the job is over. Without a key only the time is kept.
CREATE TABLE best (
    job        INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE,
    searched   INTEGER NOT NULL DEFAULT 0, -- time of the search so far, milliseconds
    pattern    TEXT, -- the rarest that the key meets
    wrap       BLOB CHECK (wrap IS NULL OR length(wrap) = 32), -- the event's id
    json       TEXT,
    expires_at INTEGER,
    CHECK ((pattern IS NULL) = (wrap IS NULL) AND (wrap IS NULL) = (json IS NULL)
        AND (json IS NULL) = (expires_at IS NULL))
) STRICT;

-- However a job ends, what was kept of it goes.
CREATE TRIGGER best_over AFTER UPDATE OF state ON job WHEN new.state <> 'accepted' BEGIN
    DELETE FROM best WHERE job = new.id;
END;
