"""The use cases: the only thing that a door may call."""
