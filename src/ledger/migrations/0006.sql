-- The key that messages about the job are encrypted to (kind 10044); NULL: the asker's own.
ALTER TABLE job ADD COLUMN encryption_key BLOB CHECK (encryption_key IS NULL OR length(encryption_key) = 32);
