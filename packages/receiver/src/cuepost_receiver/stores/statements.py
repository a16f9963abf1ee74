"""The statements that SQLite and PostgreSQL share; parameters are named, `:name`."""

INSERT = """
INSERT INTO cuepost_inbox (event_id, body, state, attempts, received_at, due_at)
VALUES (:event_id, :body, 'waiting', 0, :now, :now)
ON CONFLICT (event_id) DO NOTHING
RETURNING event_id
"""
# `due_at` of a leased event is the end of its lease, so an expired lease is due again.
CLAIM = """
UPDATE cuepost_inbox
SET state = 'working', attempts = attempts + 1, due_at = :until, lease = :lease
WHERE event_id = (
    SELECT event_id FROM cuepost_inbox WHERE due_at <= :now
    ORDER BY due_at, received_at LIMIT 1 {locking}
)
RETURNING event_id, lease, attempts, body
"""
_HELD = "WHERE event_id = :event_id AND lease = :lease AND state = 'working' RETURNING event_id"
RENEW = f"UPDATE cuepost_inbox SET due_at = :until {_HELD}"
FINISH = f"""
UPDATE cuepost_inbox
SET state = 'done', due_at = NULL, lease = NULL, ended_at = :now, body = :empty, error = NULL
{_HELD}
"""
POSTPONE = f"""
UPDATE cuepost_inbox SET state = 'waiting', due_at = :due_at, lease = NULL, error = :error {_HELD}
"""
BURY = f"""
UPDATE cuepost_inbox
SET state = 'dead', due_at = NULL, lease = NULL, error = :error, ended_at = :now {_HELD}
"""
DEAD_LETTERS = """
SELECT event_id, attempts, error, ended_at, body FROM cuepost_inbox
WHERE state = 'dead' ORDER BY ended_at, event_id LIMIT :limit
"""
REVIVE = """
UPDATE cuepost_inbox SET state = 'waiting', attempts = 0, due_at = :now, ended_at = NULL
WHERE event_id = :event_id AND state = 'dead' RETURNING event_id
"""
DISCARD = """
UPDATE cuepost_inbox SET state = 'done', ended_at = :now, body = :empty
WHERE event_id = :event_id AND state = 'dead' RETURNING event_id
"""
FORGET = """
DELETE FROM cuepost_inbox WHERE state = 'done' AND ended_at < :before RETURNING event_id
"""
COUNTS = "SELECT state, count(*) FROM cuepost_inbox GROUP BY state"
