"""Stores of an inbox: the protocol, SQLite and PostgreSQL."""
