"""The ways in: thin, blind to one another, sharing the wire models alone."""
