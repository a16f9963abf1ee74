"""The use cases: the only thing that an interface may call."""
