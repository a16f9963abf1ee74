"""Background work: claiming, sending, recording and maintenance jobs."""
