-- Times are Unix seconds. Keys and ids are their 32 bytes. Lists of relay addresses are JSON
-- arrays. Nothing here is secret in the clear: a wrap is ciphertext that only its asker can open.

-- Messages that were answered. `age` is the age of the ledger at that time (see clean.rs).
CREATE TABLE seen (
    asker BLOB NOT NULL CHECK (length(asker) = 32),
    rumor BLOB NOT NULL CHECK (length(rumor) = 32),
    age   INTEGER NOT NULL,
    PRIMARY KEY (asker, rumor)
) STRICT, WITHOUT ROWID;
CREATE INDEX seen_by_age ON seen (age);

-- Accepted jobs.
CREATE TABLE job (
    id          INTEGER PRIMARY KEY CHECK (id > 0),
    asker       BLOB NOT NULL CHECK (length(asker) = 32),
    rumor       BLOB NOT NULL CHECK (length(rumor) = 32),
    subject     TEXT,
    patterns    TEXT NOT NULL CHECK (patterns <> ''), -- separated by single spaces
    state       TEXT NOT NULL CHECK (state IN ('accepted', 'found', 'delivered', 'cancelled', 'expired')),
    accepted_at INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    seen_on     TEXT NOT NULL
) STRICT;
CREATE INDEX job_by_state ON job (state, id);
CREATE INDEX job_by_asker ON job (asker, accepted_at);

-- The outbox: sealed messages. Each is sent as it is until a relay has it.
CREATE TABLE mail (
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
CREATE UNIQUE INDEX one_result_a_job ON mail (result_of) WHERE result_of IS NOT NULL;
CREATE INDEX mail_due ON mail (due_at, id) WHERE finished = 0;
CREATE INDEX mail_due_set ON mail (due_set_at) WHERE finished = 0;
CREATE INDEX mail_kept ON mail (expires_at) WHERE finished = 1;

-- Relays that said OK to a message.
CREATE TABLE acknowledged (
    mail  INTEGER NOT NULL REFERENCES mail (id) ON DELETE CASCADE,
    relay TEXT NOT NULL,
    PRIMARY KEY (mail, relay)
) STRICT, WITHOUT ROWID;

-- Single numbers by name: last_contact, age, cleaned_at.
CREATE TABLE note (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
