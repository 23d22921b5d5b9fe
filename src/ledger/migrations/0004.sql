-- Rows that could not be read. Each stays where it is and is skipped.
CREATE TABLE quarantine (
    kind   TEXT NOT NULL CHECK (kind IN ('job', 'message', 'post', 'cursor')),
    row    INTEGER NOT NULL,
    reason TEXT NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (kind, row)
) STRICT, WITHOUT ROWID;

-- The public key of the bot that this ledger belongs to: at most one row.
CREATE TABLE owner (
    bot BLOB PRIMARY KEY CHECK (length(bot) = 32)
) STRICT, WITHOUT ROWID;

-- Jobs that expired because an older ledger was restored, and whose askers do not know yet.
CREATE TABLE lost_job (
    job INTEGER PRIMARY KEY REFERENCES job (id) ON DELETE CASCADE
) STRICT;

-- Answers that are no result are deleted when they are sent. Those of earlier versions go now.
DELETE FROM mail WHERE finished = 1 AND result_of IS NULL;

-- Sizes, kept by triggers: answers and results in bytes (with 1000 a row for columns and indices),
-- ids of messages in rows. Further numbers in `note`: generation, restored_at, answers_dropped.
INSERT OR REPLACE INTO note (name, value) VALUES
    ('answer_bytes', (SELECT coalesce(sum(length(CAST(json AS BLOB)) + 1000), 0) FROM mail WHERE result_of IS NULL)),
    ('result_bytes', (SELECT coalesce(sum(length(CAST(json AS BLOB)) + 1000), 0) FROM mail WHERE result_of IS NOT NULL)),
    ('seen_rows', (SELECT count(*) FROM seen));
CREATE TRIGGER answer_queued AFTER INSERT ON mail WHEN new.result_of IS NULL BEGIN
    UPDATE note SET value = value + length(CAST(new.json AS BLOB)) + 1000 WHERE name = 'answer_bytes';
END;
CREATE TRIGGER answer_deleted AFTER DELETE ON mail WHEN old.result_of IS NULL BEGIN
    UPDATE note SET value = value - length(CAST(old.json AS BLOB)) - 1000 WHERE name = 'answer_bytes';
END;
CREATE TRIGGER result_queued AFTER INSERT ON mail WHEN new.result_of IS NOT NULL BEGIN
    UPDATE note SET value = value + length(CAST(new.json AS BLOB)) + 1000 WHERE name = 'result_bytes';
END;
CREATE TRIGGER result_deleted AFTER DELETE ON mail WHEN old.result_of IS NOT NULL BEGIN
    UPDATE note SET value = value - length(CAST(old.json AS BLOB)) - 1000 WHERE name = 'result_bytes';
END;
CREATE TRIGGER seen_added AFTER INSERT ON seen BEGIN
    UPDATE note SET value = value + 1 WHERE name = 'seen_rows';
END;
CREATE TRIGGER seen_deleted AFTER DELETE ON seen BEGIN
    UPDATE note SET value = value - 1 WHERE name = 'seen_rows';
END;

-- Answers, oldest first, for the budget; results, for theirs.
CREATE INDEX mail_answers ON mail (id) WHERE result_of IS NULL;
