-- The operator's rule for an asker: messages of a denied one are ignored, a friend has higher
-- limits. Without a row an asker is an ordinary one.
CREATE TABLE rule (
    asker BLOB PRIMARY KEY CHECK (length(asker) = 32),
    rule  TEXT NOT NULL CHECK (rule IN ('denied', 'friend')),
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
