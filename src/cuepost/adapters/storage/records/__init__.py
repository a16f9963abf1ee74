"""The records over a session, one module a kind."""
