"""The REST interface: a table of calls, a handler before them, and documents made from the table."""
