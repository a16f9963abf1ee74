"""Where an inbox keeps what arrived: a Protocol, and SQLite built in."""
