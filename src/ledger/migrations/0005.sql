-- The language of askers who wrote in another one than English, by its code (ISO 639-1). The newest
-- rows have the highest rowids; the oldest are deleted (see clean.rs).
CREATE TABLE language (
    asker BLOB NOT NULL UNIQUE CHECK (length(asker) = 32),
    code  TEXT NOT NULL CHECK (length(code) <= 8),
    since INTEGER NOT NULL
) STRICT;
