"""The REST door: a table of calls, a gate before them, and documents made from the table."""
