"""The REST interface: a table of operations, their handler, and documents made from the table."""
