-- Split keys: the asker's public point (SEC 1, compressed) and the identifier of its family.
ALTER TABLE job ADD COLUMN split_point BLOB CHECK (split_point IS NULL OR length(split_point) = 33);
ALTER TABLE job ADD COLUMN half_family BLOB CHECK (half_family IS NULL OR length(half_family) = 32);
CREATE INDEX job_by_family ON job (half_family) WHERE half_family IS NOT NULL;

-- Families of halves for which a key was found. They stay when the asker's rows are deleted: a half
-- is used once.
CREATE TABLE used_half (
    family BLOB PRIMARY KEY CHECK (length(family) = 32)
) STRICT, WITHOUT ROWID;

-- Channel of messages about the job: sealed (NIP-17), or nip04 for clients without NIP-17. A key is
-- always sealed.
ALTER TABLE job ADD COLUMN channel TEXT NOT NULL DEFAULT 'sealed' CHECK (channel IN ('sealed', 'nip04'));

-- When to tell the asker, once, that the job takes longer than promised; NULL after that, or
-- without a promise.
ALTER TABLE job ADD COLUMN notice_at INTEGER;
CREATE INDEX job_by_notice ON job (notice_at) WHERE state = 'accepted' AND notice_at IS NOT NULL;

-- Askers who said stop.
CREATE TABLE silent (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32)
) STRICT, WITHOUT ROWID;

-- Public events, one per topic (profile, relays, status, note …), each sent until every relay has
-- it.
CREATE TABLE post (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    topic      TEXT NOT NULL UNIQUE,
    json       TEXT NOT NULL,
    relays     TEXT NOT NULL,
    queued_at  INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;
CREATE TABLE posted (
    post  INTEGER NOT NULL REFERENCES post (id) ON DELETE CASCADE,
    relay TEXT NOT NULL,
    PRIMARY KEY (post, relay)
) STRICT, WITHOUT ROWID;

-- Further numbers in `note`: last_job, noted_day.

-- Totals per day (days since 1970, UTC), for the daily note. No row leads to an asker.
CREATE TABLE day (
    day        INTEGER PRIMARY KEY,
    candidates INTEGER NOT NULL DEFAULT 0,
    accepted   INTEGER NOT NULL DEFAULT 0,
    delivered  INTEGER NOT NULL DEFAULT 0
) STRICT;
