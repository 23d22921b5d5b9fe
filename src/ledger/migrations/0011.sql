-- Why another bot, a peer, is asked to search for a job too: it is hard, or it was accepted only because a
-- peer may search for it. NULL: none is asked.
ALTER TABLE job ADD COLUMN hand_over TEXT CHECK (hand_over IN ('hard', 'too_long'));
CREATE INDEX job_handed_over ON job (id) WHERE state = 'accepted' AND hand_over IS NOT NULL;

-- Requests to peers, each at a start point of its own, whose secret is in no file. `rumor` is the id of our
-- message. Ended ones are kept for the limit a day, and refused ones as long as their job is open.
CREATE TABLE peer_request (
    rumor    BLOB PRIMARY KEY CHECK (length(rumor) = 32),
    peer     BLOB NOT NULL CHECK (length(peer) = 32),
    job      INTEGER REFERENCES job (id) ON DELETE SET NULL,
    state    TEXT NOT NULL CHECK (state IN ('asked', 'accepted', 'refused', 'over')),
    asked_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX one_request_a_job ON peer_request (job) WHERE state IN ('asked', 'accepted');
CREATE INDEX peer_request_by_job ON peer_request (job);
