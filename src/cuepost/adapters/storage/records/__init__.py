"""The records over a session, one module for each kind."""
