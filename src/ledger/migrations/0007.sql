-- What the outbox needs to choose among waiting messages, without reading the messages themselves.
CREATE INDEX mail_waiting ON mail (due_at, due_set_at, attempts, result_of, asker, id, finished)
    WHERE finished = 0;
DROP INDEX mail_due;
CREATE INDEX job_open ON job (asker) WHERE state = 'accepted';
