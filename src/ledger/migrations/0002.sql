-- Split keys: the asker's public point (SEC 1, compressed), and what all related points have in common.
ALTER TABLE job ADD COLUMN split_point BLOB CHECK (split_point IS NULL OR length(split_point) = 33);
ALTER TABLE job ADD COLUMN half_family BLOB CHECK (half_family IS NULL OR length(half_family) = 32);
CREATE INDEX job_by_family ON job (half_family) WHERE half_family IS NOT NULL;

-- Families of halves that a key was found for. They stay when an asker's rows go: a half serves once.
CREATE TABLE used_half (
    family BLOB PRIMARY KEY CHECK (length(family) = 32)
) STRICT, WITHOUT ROWID;

-- How letters about the job travel: sealed (NIP-17), or nip04 where the asker's client knows nothing else and the
-- answer is no secret.
ALTER TABLE job ADD COLUMN channel TEXT NOT NULL DEFAULT 'sealed' CHECK (channel IN ('sealed', 'nip04'));

-- When the asker is told, once, that it takes longer than promised; NULL when they were, or nothing was promised.
ALTER TABLE job ADD COLUMN notice_at INTEGER;
CREATE INDEX job_by_notice ON job (notice_at) WHERE state = 'accepted' AND notice_at IS NOT NULL;

-- Askers who said stop.
CREATE TABLE silent (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32)
) STRICT, WITHOUT ROWID;

-- What the bot says in public: one event a topic (profile, relays, status, note …), sent until each relay has it.
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

-- Further notes (single numbers): last_job, noted_day.

-- Totals of each day (days since 1970, UTC), for the daily note. No row leads back to an asker.
CREATE TABLE day (
    day        INTEGER PRIMARY KEY,
    candidates INTEGER NOT NULL DEFAULT 0,
    accepted   INTEGER NOT NULL DEFAULT 0,
    delivered  INTEGER NOT NULL DEFAULT 0
) STRICT;
