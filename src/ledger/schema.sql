-- Schema 1. Times are Unix seconds. Keys and ids are their 32 bytes. Lists of relay addresses are
-- JSON arrays. Nothing here is secret in the clear: a wrap is ciphertext that only its asker opens.

-- Messages that were answered, with the date that their authors signed.
CREATE TABLE seen (
    asker BLOB NOT NULL CHECK (length(asker) = 32),
    rumor BLOB NOT NULL CHECK (length(rumor) = 32),
    dated INTEGER NOT NULL,
    PRIMARY KEY (asker, rumor)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_by_date ON seen (dated);

-- Proofs of work that jobs cost, by their numbers. Each counts for 31 hours. Deleted after two days,
-- and the oldest beyond a million.
CREATE TABLE spent (
    asker  BLOB NOT NULL CHECK (length(asker) = 32),
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    UNIQUE (asker, number)
) STRICT;

-- Accepted jobs.
CREATE TABLE job (
    id             INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0), -- none is given twice
    asker          BLOB NOT NULL CHECK (length(asker) = 32),
    rumor          BLOB NOT NULL CHECK (length(rumor) = 32),
    ticket         BLOB NOT NULL, -- the vault's ticket for what the message asked for
    subject        TEXT,
    patterns       TEXT NOT NULL CHECK (patterns <> ''), -- separated by single spaces
    best           TEXT, -- a job without a target: its text, `best words 10m`
    state          TEXT NOT NULL CHECK (state IN ('accepted', 'found', 'delivered', 'cancelled', 'expired')),
    accepted_at    INTEGER NOT NULL,
    expires_at     INTEGER NOT NULL,
    -- When to tell the asker, once, that the job takes longer than promised; NULL after that, or
    -- without a promise.
    notice_at      INTEGER,
    seen_on        TEXT NOT NULL,
    -- Split keys: the asker's public point (SEC 1, compressed) and the identifier of its family.
    split_point    BLOB CHECK (split_point IS NULL OR length(split_point) = 33),
    half_family    BLOB CHECK (half_family IS NULL OR length(half_family) = 32),
    -- The key that messages about the job are encrypted to (kind 10044); NULL: the asker's own.
    encryption_key BLOB CHECK (encryption_key IS NULL OR length(encryption_key) = 32),
    time_class     INTEGER NOT NULL DEFAULT 0, -- the class of its expected device time (job.rs)
    priority       INTEGER NOT NULL DEFAULT 3  -- whether it comes before other jobs (job.rs)
) STRICT;
CREATE INDEX job_by_state ON job (state, id);
CREATE INDEX job_by_asker ON job (asker, accepted_at);
CREATE INDEX job_open ON job (asker) WHERE state = 'accepted';
CREATE INDEX job_by_expiry ON job (expires_at) WHERE state = 'accepted';
CREATE INDEX job_by_notice ON job (notice_at) WHERE state = 'accepted' AND notice_at IS NOT NULL;
CREATE INDEX job_by_family ON job (half_family) WHERE half_family IS NOT NULL;

-- The rarest key so far of an accepted job without a target, sealed; a rarer one replaces it. It
-- goes into the outbox when the job is over. Without a key only the time is kept.
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
CREATE TRIGGER best_over AFTER UPDATE OF state ON job WHEN new.state <> 'accepted' BEGIN
    DELETE FROM best WHERE job = new.id;
END;

-- Sealed messages. Each is sent as it is until a relay has it.
CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    wrap       BLOB NOT NULL UNIQUE CHECK (length(wrap) = 32), -- the event's id
    asker      BLOB NOT NULL CHECK (length(asker) = 32),
    result_of  INTEGER REFERENCES job (id),
    json       TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    queued_at  INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    due_set_at INTEGER NOT NULL, -- the time at which due_at was chosen
    attempts   INTEGER NOT NULL DEFAULT 0,
    finished   INTEGER NOT NULL DEFAULT 0 CHECK (finished IN (0, 1)),
    seen_on    TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX one_result_a_job ON outbox (result_of) WHERE result_of IS NOT NULL;
CREATE INDEX outbox_due_set ON outbox (due_set_at) WHERE finished = 0;
CREATE INDEX outbox_kept ON outbox (expires_at) WHERE finished = 1;
-- Answers that are no result, oldest first, for their budget.
CREATE INDEX outbox_answers ON outbox (id) WHERE result_of IS NULL;
-- What is needed to choose among waiting messages, without reading the messages themselves.
CREATE INDEX outbox_waiting ON outbox (due_at, due_set_at, attempts, result_of, asker, id, finished)
    WHERE finished = 0;

-- Relays that said OK to a message.
CREATE TABLE acknowledged (
    message INTEGER NOT NULL REFERENCES outbox (id) ON DELETE CASCADE,
    relay   TEXT NOT NULL,
    PRIMARY KEY (message, relay)
) STRICT, WITHOUT ROWID;

-- Families of halves for which a key was found. They stay when the asker's rows are deleted: a half
-- is used once.
CREATE TABLE used_half (
    family BLOB PRIMARY KEY CHECK (length(family) = 32)
) STRICT, WITHOUT ROWID;

-- Jobs that expired because an older ledger was restored, and whose askers do not know yet.
CREATE TABLE lost_job (
    job INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE
) STRICT;

-- Askers who said stop, and when.
CREATE TABLE silent (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32),
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Start times of deleted jobs, for the limit per day. Nothing of the request is kept. Deleted after
-- a day.
CREATE TABLE started (
    asker BLOB NOT NULL CHECK (length(asker) = 32),
    at    INTEGER NOT NULL
) STRICT;
CREATE INDEX started_by_asker ON started (asker, at);

-- Askers whose message by NIP-04 was answered, and when. Deleted after a day.
CREATE TABLE redirected (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32),
    at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The language of askers who wrote in another one than English, by its code (ISO 639-1). The newest
-- rows have the highest rowids; the oldest are deleted.
CREATE TABLE language (
    asker BLOB NOT NULL UNIQUE CHECK (length(asker) = 32),
    code  TEXT NOT NULL CHECK (length(code) <= 8),
    since INTEGER NOT NULL
) STRICT;

-- The operator's rule for an asker: messages of a denied one are ignored, a friend has higher
-- limits. Without a row an asker is an ordinary one.
CREATE TABLE rule (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32),
    rule  TEXT NOT NULL CHECK (rule IN ('denied', 'friend')),
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Whom the npubs of `friends_of` follow, as last looked up: friends too.
CREATE TABLE followed (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32)
) STRICT, WITHOUT ROWID;

-- Public events, one per topic (profile, relays, status …), each sent until every relay has it.
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

-- Totals per day (days since 1970, UTC), for the daily post. No row leads to an asker.
CREATE TABLE day (
    day        INTEGER PRIMARY KEY,
    candidates INTEGER NOT NULL DEFAULT 0,
    accepted   INTEGER NOT NULL DEFAULT 0,
    delivered  INTEGER NOT NULL DEFAULT 0,
    joules     INTEGER -- NULL without a device that tells its energy
) STRICT;

-- The public key of the bot that this ledger belongs to: at most one row.
CREATE TABLE owner (
    bot BLOB PRIMARY KEY CHECK (length(bot) = 32)
) STRICT, WITHOUT ROWID;

-- Rows that could not be read. Each stays where it is and is skipped.
CREATE TABLE quarantine (
    kind   TEXT NOT NULL CHECK (kind IN ('job', 'message', 'post', 'cursor')),
    row    INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (kind, row)
) STRICT, WITHOUT ROWID;

-- Single numbers by name: last_contact, cleaned_at, posted_day, generation, restored_at,
-- answers_dropped, paused_until, seen_from, and four sizes that triggers keep: answers, results that no relay
-- has, and results that one has, in bytes (with 1000 a row for columns and indices); ids of
-- messages in rows.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO meta (name, value)
    VALUES ('answer_bytes', 0), ('undelivered_bytes', 0), ('result_bytes', 0), ('seen_rows', 0);
CREATE TRIGGER message_queued AFTER INSERT ON outbox BEGIN
    UPDATE meta SET value = value + length(CAST(new.json AS BLOB)) + 1000
        WHERE name = iif(new.result_of IS NULL, 'answer_bytes', 'undelivered_bytes');
END;
CREATE TRIGGER result_delivered AFTER UPDATE OF state ON job WHEN new.state = 'delivered' BEGIN
    UPDATE meta SET value = value + iif(name = 'result_bytes', 1, -1) *
        (SELECT length(CAST(json AS BLOB)) + 1000 FROM outbox WHERE result_of = new.id)
        WHERE name IN ('undelivered_bytes', 'result_bytes');
END;
CREATE TRIGGER message_deleted AFTER DELETE ON outbox BEGIN
    UPDATE meta SET value = value - length(CAST(old.json AS BLOB)) - 1000
        WHERE name = CASE (SELECT state FROM job WHERE id = old.result_of)
            WHEN 'found' THEN 'undelivered_bytes' WHEN 'delivered' THEN 'result_bytes' ELSE 'answer_bytes' END;
END;
CREATE TRIGGER seen_added AFTER INSERT ON seen BEGIN
    UPDATE meta SET value = value + 1 WHERE name = 'seen_rows';
END;
CREATE TRIGGER seen_deleted AFTER DELETE ON seen BEGIN
    UPDATE meta SET value = value - 1 WHERE name = 'seen_rows';
END;
