"""The use cases: the only thing that a interface may call."""
